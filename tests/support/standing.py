"""A job without elastic-run: elastic-rendezvous and agents that the test starts itself, each where
it wants it. It is watched and broken like a Job.

  with StandingJob(build, hosts=[Host("a", 2), Host("b", 2)], np=4, min_np=2, command=[...],
                   folder=folder, flags=["--orphan-limit", "2s"]) as job:
      job.wait_size(4)
"""

import dataclasses
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import threading

import processes
from job import Job
from waiting import wait_until

NANOSECONDS = 1_000_000_000


@dataclasses.dataclass
class Host:
    """Where one agent runs. `prefix` is a command that becomes the one behind it."""
    name: str
    slots: int
    address: str = "127.0.0.1"
    prefix: tuple = ()


class StandingJob(Job):
    """The server and its agents are children of the test process."""

    def __init__(self, build, hosts, np, min_np, command, folder, flags=(), orphan_limit=30.0,
                 listen="127.0.0.1", server_prefix=(), env=None, own_session=True):
        # pylint: disable=super-init-not-called,too-many-arguments
        self._own_session = own_session
        self.build = pathlib.Path(build).resolve()
        self.lines, self._readers = [], []
        self._last_status = None
        self.pid = os.getpid()  # whatever is broken descends from here
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("ELASTIC_")}
        self._environment.update(env or {})
        self._command, self._folder = [str(word) for word in command], pathlib.Path(folder)
        self._orphan_limit, self._nonce = orphan_limit, random.getrandbits(63)
        # A path: it can be reached from any network namespace.
        self._address = f"unix:{self._folder}/status"
        self.process = self._start(
            [*server_prefix, self.build / "bin" / "elastic-rendezvous", "--np", str(np),
             "--min-np", str(min_np), "-H", ",".join(f"{h.name}:{h.slots}" for h in hosts),
             "--listen", listen, "--status-address", self._address,
             "--orphan-limit", f"{orphan_limit}s", *flags], subprocess.DEVNULL)
        line = self.wait_line(r"agents connect to ", 10)
        self.server = re.search(r"agents connect to (\S+)", line.text).group(1)
        self.agent_of = {host.name: self._start_agent(host) for host in hosts}

    def _start(self, argv, stdin):
        process = subprocess.Popen([str(word) for word in argv], stdin=stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=self._environment, start_new_session=self._own_session,
                                   process_group=None if self._own_session else 0)
        reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        reader.start()
        self._readers.append(reader)
        return process

    def _start_agent(self, host):
        folder = self._folder / host.name
        folder.mkdir(mode=0o700, exist_ok=True)
        agent = self._start([*host.prefix, self.build / "bin" / "elastic-agent"], subprocess.PIPE)
        agent.stdin.write(json.dumps({
            "version": 1, "job_id": "job", "job_nonce": self._nonce, "host": host.name,
            "listen_address": host.address, "slots": host.slots, "server": self.server,
            "folder": str(folder), "command": self._command, "grace_period_ns": NANOSECONDS,
            "orphan_limit_ns": int(self._orphan_limit * NANOSECONDS), "log_level": "warning",
        }).encode() + b"\n")
        agent.stdin.flush()  # and stays open: its end would be the launcher's (P21)
        return agent

    def agents(self):
        return [agent.pid for agent in self.agent_of.values()]

    def below(self):
        return [p for agent in self.agents() for p in (agent, *processes.descendants(agent))]

    def __exit__(self, kind, *_):
        """Ends what still runs: in order if all went well, else by pid."""
        if kind is None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGTERM)
            self.wait_exit(20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        for agent in self.agent_of.values():
            agent.stdin.close()
        try:
            if kind is None:
                wait_until(lambda: all(a.poll() is not None for a in self.agent_of.values()), 5,
                           "the agents' end")
        finally:
            for pid in [p for p in self.below() if processes.alive(p)]:
                try:
                    processes.send(pid, signal.SIGKILL, self.pid)
                except (ProcessLookupError, PermissionError):
                    pass
            for agent in self.agent_of.values():
                agent.wait(10)
            processes.reap_orphans(known=set())
            for reader in self._readers:
                reader.join(2)
            for process in (self.process, *self.agent_of.values()):
                process.stdout.close()
