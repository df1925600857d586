"""One case of the recovery benchmark: a job whose workers are killed one after the other, and what
the survivors log about it."""

import collections
import contextlib
import dataclasses
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
# pylint: disable=wrong-import-position
import page as pages
import processes
from standing import Host, StandingJob
from waiting import pause_until, wait_until

ROWS = ["detect", "mark", "re-form", "restore", "first collective", "total"]
# Messages that follow each other from the death to the first collective: report, mark, answer,
# roster, the worker's bell, request and answer of a new edge, the program's thread.
CONTROL_HOPS = 8
UNDISTURBED_STEPS = 20
WARM_STEPS = 3


@dataclasses.dataclass(frozen=True)
class Case:
    """`slots` of each host; the victims are all ranks in turn, or always one slot's worker."""
    name: str
    slots: tuple
    goals: dict = dataclasses.field(default_factory=dict)  # row: milliseconds, median
    worker: tuple = ()                                     # further flags of it
    victim: tuple = ()                                     # (host index, slot); empty: all
    spinners: int = 0                                      # processes that only use up a core
    copied: int = 0                                        # bytes that each survivor must copy

    @property
    def np(self):
        return sum(self.slots)


class Logs:
    """The workers' logs, read on from where the last look ended."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._read = collections.Counter()
        self.recovered = collections.defaultdict(dict)  # generation: {rank: stamps}
        self.steps = collections.defaultdict(dict)      # (generation, step): {rank: (begun, ended)}

    def look(self):
        for path in self.folder.glob("*.log"):
            with open(path, "rb") as file:
                file.seek(self._read[path])
                text = file.read()
            whole = text[:text.rfind(b"\n") + 1]
            self._read[path] += len(whole)
            for line in whole.decode().splitlines():
                kind, *fields = line.split()
                generation, rank, _, step, *stamps = map(int, fields)
                if kind == "recovered":
                    self.recovered[generation][rank] = tuple(stamps)
                else:
                    self.steps[generation, step][rank] = tuple(stamps)

    def step_ms(self, generation, size):
        """Milliseconds of each step of the generation, until its last rank was through."""
        return [max(end - begin for begin, end in ranks.values()) / 1e6
                for (g, _), ranks in sorted(self.steps.items())
                if g == generation and len(ranks) == size]


def stations(killed, stamps):
    """Milliseconds of each row from the survivors' stamps."""
    fenced, bell, roster, edges, restored, first = zip(*stamps)
    points = [killed, min(fenced), max(bell), max(roster + edges), max(restored), max(first)]
    # A station that no survivor reached later than the one before counts 0.
    points = [max(points[:i + 1]) for i in range(len(points))]
    row = {name: (b - a) / 1e6 for name, a, b in zip(ROWS, points, points[1:])}
    row["total"] = (points[-1] - killed) / 1e6
    return row


class Bench:
    """One case. `network` is a networks.Network of a host for each entry of slots, or None: then
    hosts are loopback addresses, and agents and server still have only TCP."""

    def __init__(self, build, folder, case, rng, network=None):
        # pylint: disable=too-many-arguments
        self.build, self.folder, self.case = build, pathlib.Path(folder), case
        self.rng, self.network = rng, network
        self.died_in = collections.Counter()  # phases, as the victims' pages show them
        self.ranks = collections.Counter()    # of the victims
        self.step_ms = None                   # median of an undisturbed step with one rank less
        self._made = 0

    def _program(self, name):
        return self.build / "tests" / "bin" / name

    def job(self, slots):
        """(job, logs) of a new job with so many slots on each host."""
        self._made += 1
        folder = self.folder / f"j{self._made}"
        logs = folder / "logs"
        logs.mkdir(parents=True)
        network = self.network
        if network is None:
            hosts = [Host(f"n{i}", n, f"127.0.0.{i + 1}") for i, n in enumerate(slots)]
            options = {}
        else:
            hosts = [Host(f"n{i}", n, network.address(i), network.prefix(i))
                     for i, n in enumerate(slots)]
            options = {"listen": network.hub_address, "server_prefix": network.hub_prefix()}
        command = [self._program("recovery_worker"), "--log", logs, *self.case.worker]
        # All in one session: with sched_autogroup each session gets an equal share of the cores,
        # and the path's threads would wait for the other "hosts" whatever their own slice is.
        return StandingJob(self.build, hosts, np=sum(slots), min_np=2, command=command,
                           folder=folder, env={"TMPDIR": str(folder)}, own_session=False,
                           **options), Logs(logs)

    def _steps(self, job, logs, size, count, above=0):
        """Waits until a generation of that size has made so many steps; returns its status."""
        status = job.wait_size(size, timeout=120, above=above)

        def made():
            logs.look()
            return len(logs.step_ms(status.generation, size)) >= count
        wait_until(made, 120, lambda: f"{count} steps; {job.tail()}", every=0.05)
        return status

    def measure_undisturbed(self):
        """Steps with as many ranks as there are survivors, with nothing else going on."""
        slots = [*self.case.slots[:-1], self.case.slots[-1] - 1]
        job, logs = self.job([n for n in slots if n > 0])
        with job:
            status = self._steps(job, logs, sum(slots), WARM_STEPS + UNDISTURBED_STEPS)
            self.step_ms = statistics.median(
                logs.step_ms(status.generation, sum(slots))[WARM_STEPS:])

    def measure_floor(self, rounds):
        """[(futex, whole chain)] in ms, while the case's job trains undisturbed."""
        hops = CONTROL_HOPS + (self.case.np - 2).bit_length()  # those of a small allreduce
        job, logs = self.job(self.case.slots)
        with job, self._spinners():
            self._steps(job, logs, self.case.np, 2)
            with subprocess.Popen([self._program("robust_floor"), str(hops)], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) as chain:
                return [self._floor_round(chain) for _ in range(rounds)]

    def _floor_round(self, chain):
        pause_until(time.monotonic() + self.rng.uniform(0, 0.1))  # at a random moment of a step
        chain.stdin.write("\n")
        chain.stdin.flush()
        return tuple(int(n) / 1e6 for n in chain.stdout.readline().split())

    def copy_probe_ms(self, rounds=20):
        """Median of all survivors' processes copying their bytes at once."""
        done = subprocess.run([self._program("copy_probe"), str(self.case.np - 1),
                               str(self.case.copied), str(rounds)],
                              check=True, capture_output=True, text=True, timeout=120)
        return statistics.median(int(line) / 1e6 for line in done.stdout.split())

    def kills(self, count):
        """A dictionary of ROWS and `next step` (ratio) for each of `count` kills."""
        job, logs = self.job(self.case.slots)
        with job, self._spinners():
            generation = 0
            for number in range(count):
                generation, sample = self._kill_one(job, logs, number, generation)
                yield sample

    @contextlib.contextmanager
    def _spinners(self):
        spinners = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
                    for _ in range(self.case.spinners)]
        try:
            yield
        finally:
            for spinner in spinners:
                spinner.kill()
                spinner.wait()

    def _victim(self, members, number):
        if self.case.victim:
            host, slot = self.case.victim
            return next(w for w in members if w.host == f"n{host}" and w.slot == slot)
        return next(w for w in members if w.rank == number % self.case.np)

    def _kill_one(self, job, logs, number, above):
        # The newcomer has made a step, too.
        status = self._steps(job, logs, self.case.np, 1, above)
        victim = self._victim(status.members, number)
        all_pages = {w.pid: pages.Page(job, w.pid) for w in status.members}
        step = (self.step_ms or 100) / 1e3
        pause_until(time.monotonic() + self.rng.uniform(0, 2 * step))
        self._send(all_pages, victim.pid, step)
        killed = self._killed
        generation = wait_until(lambda: self._after(logs, status.generation), 30,
                                lambda: "recovery; " + job.tail(), every=0.1)
        # The kernel takes long to free gigabytes.
        wait_until(lambda: not processes.alive(victim.pid), 60,
                   lambda: "the end of " + processes.describe([victim.pid]), every=0.1)
        self.died_in[all_pages[victim.pid].phase_name] += 1
        self.ranks[victim.rank] += 1
        for page in all_pages.values():
            page.close()
        sample = stations(killed, list(logs.recovered[generation].values()))
        if self.step_ms is not None:
            sample["next step"] = self._next_step(job, logs, generation) / self.step_ms
        return generation, sample

    def _send(self, all_pages, pid, step):
        """SIGKILL while every rank's phase says in collective, at a random moment of it."""
        def all_inside():
            return all(p.phase == pages.IN_COLLECTIVE for p in all_pages.values())

        def sent():
            if not all_inside():
                return False
            pause_until(time.monotonic() + self.rng.uniform(0, step / 2))
            if not all_inside():
                return False
            self._killed = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            all_pages[pid].target.send(signal.SIGKILL)
            return True
        wait_until(sent, 60, lambda: "all in a collective: " + ", ".join(
            p.phase_name for p in all_pages.values()), every=0.001)

    def _after(self, logs, before):
        """The first generation after `before` that all survivors have begun."""
        logs.look()
        return next((g for g in range(before + 1, before + 20)
                     if len(logs.recovered.get(g, ())) >= self.case.np - 1), None)

    def _next_step(self, job, logs, generation):
        def made():
            logs.look()
            return logs.step_ms(generation, self.case.np - 1)
        return wait_until(made, 60, lambda: "a step after the recovery; " + job.tail(),
                          every=0.05)[0]
