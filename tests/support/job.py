"""Starts elastic-run as a user would, watches it through elastic-ctl, and kills parts of it.

  with Job(build, ["-np", "4", "-H", "127.0.0.1:2,127.0.0.2:2"], ["./worker"]) as job:
      job.wait_size(4)
      job.kill(job.status().members[2].pid)
      job.expect_exit(0, 30)
"""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

import processes
from waiting import wait_until

# Two hosts of two slots each; both are this machine.
HOSTS = "127.0.0.1:2,127.0.0.2:2"
ADDRESS = re.compile(r"(127\.0\.0\.1:\d+|unix:[^\s;]+)")


@dataclasses.dataclass
class Line:
    """One line that elastic-run wrote."""
    text: str


@dataclasses.dataclass(frozen=True)
class Worker:
    rank: int
    pid: int
    host: str
    slot: int
    incarnation: str


class Status:
    """What `elastic-ctl status --json` said."""

    def __init__(self, raw):
        self.raw = raw
        self.state = raw.get("state", "")
        self.size = int(raw.get("size", 0))
        self.generation = int(raw.get("generation", {}).get("number", 0)
                              if isinstance(raw.get("generation"), dict)
                              else raw.get("generation", 0))
        self.waits_for = raw.get("wait_text", "")
        self.resets = raw.get("resets", [])
        self.workers = [Worker(rank=int(w.get("rank", -1)), pid=int(w.get("pid", 0)),
                               host=w.get("host", ""), slot=int(w.get("slot", 0)),
                               incarnation=str(w.get("incarnation", "")))
                        for w in raw.get("workers", [])]

    @property
    def members(self):
        return [w for w in self.workers if w.rank >= 0]


class Job:
    """One run of elastic-run and everything below it."""

    def __init__(self, build, arguments, command, env=None, cwd=None, own_session=True):
        self.build = pathlib.Path(build).resolve()
        self.lines = []
        self._last_status = None
        self._address = None
        self.spared = set  # pids below the test that are none of this job
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ELASTIC_")}
        environment.update(env or {})
        self.argv = [str(self.build / "bin" / "elastic-run"), *arguments, *map(str, command)]
        # Apart from the test's process group: a signal to its terminal must not reach the job
        # twice. A session of its own also makes it deaf to stops from a terminal: the kernel drops
        # them for a group that has nobody beside it to continue it.
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, cwd=cwd,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment, start_new_session=own_session,
                                        process_group=None if own_session else 0)
        self.pid = self.process.pid
        self._readers = [threading.Thread(target=self._read, args=(stream,), daemon=True)
                         for stream in (self.process.stdout, self.process.stderr)]
        for reader in self._readers:
            reader.start()

    def _read(self, stream):
        for raw in stream:
            self.lines.append(Line(raw.decode(errors="replace").rstrip("\n")))

    # ---- looking -----------------------------------------------------------------------------
    @property
    def output(self):
        return "\n".join(line.text for line in list(self.lines))

    def find(self, pattern):
        """First line that matches, or None."""
        return next((line for line in list(self.lines) if re.search(pattern, line.text)), None)

    def wait_line(self, pattern, timeout=20):
        return wait_until(lambda: self.find(pattern), timeout,
                          lambda: f"a line like /{pattern}/ in:\n{self.output}")

    @property
    def address(self):
        """The status address of the start line."""
        if self._address is None:
            line = self.wait_line(r"status.*" + ADDRESS.pattern, 10)
            self._address = ADDRESS.search(line.text).group(1)
        return self._address

    def ctl(self, *arguments):
        return subprocess.run([str(self.build / "bin" / "elastic-ctl"), *arguments],
                              capture_output=True, text=True, timeout=20, check=False)

    def status(self):
        """A Status, or None while there is no answer."""
        if self.process.poll() is not None:
            return None
        done = self.ctl("status", "--address", self.address, "--json")
        if done.returncode != 0:
            return None
        self._last_status = Status(json.loads(done.stdout))
        return self._last_status

    def wait_status(self, condition, timeout=20, what="a state of the job"):
        def look():
            status = self.status()
            return status if status is not None and condition(status) else None
        return wait_until(look, timeout, lambda: f"{what}; newest status "
                          f"{json.dumps(self._last_status.raw if self._last_status else None)}; "
                          f"exit {self.process.poll()}; output:\n{self.tail()}", every=0.02)

    def wait_size(self, size, timeout=20, above=0):
        """A running generation of that size, newer than generation `above`."""
        return self.wait_status(
            lambda s: s.size == size and s.generation > above and len(s.members) == size
            and s.state.lower() in ("running", "finishing"), timeout, f"size {size}")

    def tail(self, count=40):
        return "\n".join(line.text for line in list(self.lines)[-count:])

    def below(self):
        return processes.descendants(self.pid)

    def agents(self):
        """Pids of the agents: children of elastic-run."""
        return [p for p in processes.children_map().get(self.pid, [])
                if "elastic-agent" in processes.command_of(p)
                or processes.name_of(p).startswith("elastic-agent")]

    def agent_and_guardian_of(self, worker_pid):
        """(agent pid, guardian pid) of a worker, by its ancestors."""
        chain, pid = [], worker_pid
        while pid not in (self.pid, 0, 1):
            stat = processes.stat_of(pid)
            assert stat is not None, f"process {pid} is gone"
            chain.append(pid)
            pid = stat[1]
        assert pid == self.pid, f"{worker_pid} is no descendant of elastic-run {self.pid}"
        return chain[-1], chain[-2]

    # ---- breaking ----------------------------------------------------------------------------
    def kill(self, pid, number=signal.SIGKILL):
        processes.send(pid, number, self.pid)

    def kill_all(self, pids, number=signal.SIGKILL):
        """All of them within microseconds: a host may be back 30 ms after its agent's death."""
        targets = [processes.Target(pid, self.pid) for pid in pids]
        for target in targets:
            target.send(number)
        for target in targets:
            target.close()

    def signal(self, number):
        self.process.send_signal(number)

    # ---- ending ------------------------------------------------------------------------------
    def wait_exit(self, timeout=60):
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"elastic-run still runs after {timeout} s; below it "
                f"{processes.describe(self.below())}; newest status "
                f"{json.dumps(self._last_status.raw if self._last_status else None)}; output:\n"
                f"{self.tail()}") from None
        for reader in self._readers:
            reader.join(5)
        return code

    def expect_exit(self, code, timeout=60):
        found = self.wait_exit(timeout)
        assert found == code, f"exit {found}, expected {code}; output:\n{self.tail()}"
        return self

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Ends a job that still runs: in order if all went well, else whatever is left, by pid."""
        if kind is None and self.process.poll() is None:
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGTERM)
            self.wait_exit(20)
        below = self.below() if self.process.poll() is None else []
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        for _ in range(3):
            for pid in below + processes.descendants(os.getpid()):
                if pid in (os.getpid(), *self.spared()) or not processes.alive(pid):
                    continue
                try:
                    processes.send(pid, signal.SIGKILL, os.getpid())
                except (ProcessLookupError, PermissionError):
                    pass
            processes.reap_orphans(known=self.spared())
        for reader in self._readers:
            reader.join(2)
        self.process.stdout.close()
        self.process.stderr.close()
