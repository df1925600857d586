"""scripts/bench recovery: how long a job stands still when a worker is killed.

Four workers on two hosts (two loopback addresses) run 64 MiB allreduces without a pause; one of
them is killed at a random moment, and each survivor stamps the stations of its recovery. All
stamps, the killer's too, are of CLOCK_BOOTTIME on this machine. The rows follow each other:

  detect            kill -> the first survivor is fenced (its agent saw the death)
  mark              -> the last survivor's runtime has heard it
  re-form           -> the last survivor knows the successor and has its edges
  restore           -> the last survivor has the committed state in place
  first collective  -> a 4-byte allreduce over the new edges is complete on all survivors
  total             kill -> there

`floor` is measured next to it: SIGKILL until a waiter on the victim's robust futex wakes, with two
busy processes; no detection on one host can beat it.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
# pylint: disable=wrong-import-position
import page as pages
import processes
from job import HOSTS, Job
from waiting import pause_until, wait_until

SURVIVORS = 3
GOAL_MS = {"total": 10.0}
ROWS = ["detect", "mark", "re-form", "restore", "first collective", "total"]


def recoveries(folder, generation):
    """{rank: (fenced, bell, roster, edges, restored, first)} of what entered `generation`."""
    found = {}
    for path in pathlib.Path(folder).glob("*.log"):
        for line in path.read_text().splitlines():
            fields = line.split()
            if fields[0] == "recovered" and int(fields[1]) == generation:
                found[int(fields[2])] = tuple(map(int, fields[4:]))
    return found


def stations(killed, stamps):
    """Milliseconds of each row from the survivors' stamps."""
    fenced, bell, roster, edges, restored, first = zip(*stamps)
    points = [killed, min(fenced), max(bell), max(roster + edges), max(restored), max(first)]
    # A station that no survivor reached later than the one before counts 0.
    points = [max(points[:i + 1]) for i in range(len(points))]
    row = {name: (b - a) / 1e6 for name, a, b in zip(ROWS, points, points[1:])}
    row["total"] = (points[-1] - killed) / 1e6
    return row


class Measurement:
    """One job, one victim after the other."""

    def __init__(self, build, folder, rng, reduce_bytes):
        self.logs = pathlib.Path(folder)
        self.rng = rng
        self.died_in = collections.Counter()  # phases, as the victims' pages show them
        worker = build / "tests" / "bin" / "recovery_worker"
        self.job = Job(build, ["-np", "4", "--min-np", "2", "-H", HOSTS],
                       [worker, "--log", str(folder), "--reduce-bytes", str(reduce_bytes)],
                       env={"TMPDIR": str(folder)})

    def kill_one(self, number):
        status = self.job.wait_size(4, timeout=60)
        victim = next(w for w in status.members if w.host == f"127.0.0.{number % 2 + 1}"
                      and w.slot == number // 2 % 2)
        page = pages.Page(self.job, victim.pid)
        # At a random moment of an allreduce.
        pause_until(time.monotonic() + self.rng.uniform(0.1, 0.5))
        wait_until(lambda: page.phase == pages.IN_COLLECTIVE, 20, "an allreduce", every=0.001)
        killed = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        page.target.send()
        wait_until(lambda: not processes.alive(victim.pid), 5, "the victim's end")
        self.died_in[page.phase_name] += 1
        page.close()
        after = wait_until(lambda: self._recovered(status.generation), 30,
                           lambda: "recovery; " + self.job.tail())
        return stations(killed, list(after.values()))

    def _recovered(self, before):
        """The first generation after `before` in which the survivors have all logged."""
        for generation in range(before + 1, before + 20):
            found = recoveries(self.logs, generation)
            if len(found) >= SURVIVORS:
                return found
        return None


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def floor_ms(build, rounds):
    done = subprocess.run([build / "tests" / "bin" / "robust_floor", str(rounds)], check=True,
                          capture_output=True, text=True, timeout=120)
    return [int(line) / 1e6 for line in done.stdout.split()]


def table(samples, floor):
    case = "kill 1 of 4 on 2 hosts, 64 MiB allreduce"
    rows = []
    for name in ROWS:
        values = [s[name] for s in samples]
        value = percentile(values, 0.5)
        peer = percentile(floor, 0.5) if name == "detect" and floor else None
        rows.append({"bench": "recovery", "case": case, "metric": name, "unit": "ms",
                     "value": round(value, 3), "p99": round(percentile(values, 0.99), 3),
                     "peer": "robust futex wake (floor)" if peer else None,
                     "peer_value": round(peer, 3) if peer else None,
                     "ratio": round(value / peer, 2) if peer else None,
                     "goal": GOAL_MS.get(name)})
    return rows


def show(rows, kills):
    print(f"recovery: {rows[0]['case']}, {kills} kills, milliseconds")
    print(f"{'':18}{'median':>10}{'p99':>10}{'goal':>10}  peer")
    for row in rows:
        goal = "" if row["goal"] is None else f"{row['goal']:.1f}"
        peer = "" if row["peer"] is None else f"{row['peer']}: {row['peer_value']:.2f}"
        print(f"{row['metric']:18}{row['value']:10.2f}{row['p99']:10.2f}{goal:>10}  {peer}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--reduce-bytes", type=int, default=64 << 20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    options = parser.parse_args()
    processes.become_subreaper()
    build = pathlib.Path(options.build).resolve()
    folder = tempfile.mkdtemp(prefix="eb-")
    samples = []
    try:
        measurement = Measurement(build, folder, random.Random(options.seed), options.reduce_bytes)
        with measurement.job:
            for number in range(options.kills):
                samples.append(measurement.kill_one(number))
                print(f"  kill {number + 1}: total {samples[-1]['total']:.2f} ms", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows = table(samples, floor_ms(build, options.kills))
    show(rows, len(samples))
    print("victims died " + ", ".join(
        f"{phase}: {count}" for phase, count in measurement.died_in.most_common()))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
