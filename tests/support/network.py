"""Hosts that share nothing but TCP: a network and IPC namespace each, on one bridge.

  with Network(4) as network:
      network.prefix(0)       # what to put before a command that runs on host 0
      network.address(0)      # its address on the bridge
      network.cut(2)          # frames to and from host 2 vanish: no FIN, no RST, no lost carrier

Needs root and iproute2. The bridge is in a namespace of its own, so nothing of the machine's own
network is touched. A process may be moved to no other host, and cut() is undone by mend().
"""

import os
import shutil
import subprocess

_made = 0


def why_not():
    """Why there can be no network here, in words; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            return f"there is no program `{program}` (packages iproute2, util-linux)"
    done = subprocess.run(["ip", "netns", "add", f"et{os.getpid()}-probe"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        return f"no network namespace can be made here: {done.stderr.strip()}"
    _run("ip", "netns", "delete", f"et{os.getpid()}-probe")
    return None


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class Network:
    """`count` hosts and the hub, where the bridge is and a server may run."""

    def __init__(self, count):
        global _made  # pylint: disable=global-statement
        _made += 1
        self.name = f"et{os.getpid()}-{_made}"
        self.count = count
        self._spaces = []

    def _space(self, host):
        return f"{self.name}-h{host}"

    @property
    def hub(self):
        return f"{self.name}-hub"

    hub_address = "10.99.0.254"

    @staticmethod
    def address(host):
        return f"10.99.0.{host + 1}"

    def prefix(self, host):
        """Runs a command on the host: own network, own IPC, own /dev/shm. The process that is
        started this way becomes the command, so its pid is the command's."""
        return ["ip", "netns", "exec", self._space(host), "unshare", "--ipc", "--mount", "sh", "-c",
                'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]

    def hub_prefix(self):
        return ["ip", "netns", "exec", self.hub]

    def cut(self, host):
        """Takes the host's cable out of the bridge; the link itself stays up on both sides."""
        _run("ip", "-n", self.hub, "link", "set", f"h{host}", "nomaster")

    def mend(self, host):
        _run("ip", "-n", self.hub, "link", "set", f"h{host}", "master", "hub")

    def _add(self, space):
        _run("ip", "netns", "add", space)
        self._spaces.append(space)
        _run("ip", "-n", space, "link", "set", "lo", "up")

    def __enter__(self):
        try:
            self._add(self.hub)
            _run("ip", "-n", self.hub, "link", "add", "hub", "type", "bridge")
            _run("ip", "-n", self.hub, "addr", "add", f"{self.hub_address}/24", "dev", "hub")
            _run("ip", "-n", self.hub, "link", "set", "hub", "up")
            for host in range(self.count):
                space = self._space(host)
                self._add(space)
                _run("ip", "-n", self.hub, "link", "add", f"h{host}", "type", "veth", "peer",
                     "name", "eth0", "netns", space)
                self.mend(host)
                _run("ip", "-n", self.hub, "link", "set", f"h{host}", "up")
                _run("ip", "-n", space, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
                _run("ip", "-n", space, "link", "set", "eth0", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in reversed(self._spaces):
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)
        self._spaces = []
