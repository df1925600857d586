"""scripts/bench recovery: how long a job stands still when a worker is killed.

Server and agents share nothing but TCP (--namespaces: each host is a network and IPC namespace of
its own; needs root). Workers make steps of a 64 MiB allreduce, a new state of 64 MiB and a commit;
one of them, each rank in its turn, is killed while all are in the allreduce, and each survivor
stamps the stations of its recovery. All stamps, the killer's too, are of CLOCK_BOOTTIME on this
machine. The rows follow each other:

  detect            kill -> the first survivor is fenced (its agent saw the death)
  mark              -> the last survivor's runtime has heard it
  re-form           -> the last survivor knows the successor and has its edges
  restore           -> the last survivor has the committed state in place
  first collective  -> a 4-byte allreduce over the new edges is complete on all survivors
  total             kill -> there
  others know       kill -> the last survivor's runtime has heard it (detect and mark together)
  next step         the next full step against the median of undisturbed ones at the new size

The floor is measured under the same load, that is, while such a job trains undisturbed: SIGKILL
until a waiter on the victim's robust futex wakes (for detect), and from there one wake-up for each
message that follows another on the way to the first collective (for total). With state in place
the goals for total are 1.2 times the copy probe more: all survivors' processes copying their bytes
at once.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from recovery_job import ROWS, Bench, Case
import network as networks
import processes

MIB = 1 << 20
CORES = os.cpu_count()


def cases(options):
    """{name: Case} of what can be measured."""
    worker = ("--reduce-bytes", options.reduce_bytes, "--state-bytes", options.state_bytes)
    return {
        "4": Case("kill 1 of 4", (2, 2), {"total": 10.0, "next step": 1.3}, worker),
        "8": Case("kill 1 of 8", (4, 4), {"total": 15.0, "next step": 1.3}, worker),
        "4in": Case("kill 1 of 4, state in place", (2, 2), {"total": 10.0, "next step": 1.3},
                    (*worker, "--state", "in-place"), copied=options.state_bytes),
        "8in": Case("kill 1 of 8, state in place", (4, 4), {"total": 15.0, "next step": 1.3},
                    (*worker, "--state", "in-place"), copied=options.state_bytes),
        "4gib": Case(f"kill 1 of 4 with {options.ballast_bytes / MIB:.0f} MiB touched, "
                     f"{CORES} cores busy", (1, 3), {"others know": 2.0},
                     (*worker, "--ballast-bytes", options.ballast_bytes, "--ballast-slot", 2),
                     victim=(1, 2), spinners=CORES),
    }


P99_GOALS = {"total": 50.0, "others know": 10.0}


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(case, samples, floor, copy_ms):
    """Rows of the JSON file. `copy_ms`: what a restore may take besides, for the goals of total."""
    peers = {}
    if floor:
        peers["detect"] = ("robust futex wake (floor)", [f for f, _ in floor])
        peers["total"] = ("one wake-up a hop (floor)", [whole for _, whole in floor])
    for sample in samples:
        sample["others know"] = sample["detect"] + sample["mark"]
    rows = []
    for name in [*ROWS, "others know", "next step"]:
        values = [s[name] for s in samples if name in s]
        if not values:
            continue
        value = percentile(values, 0.5)
        peer, found = peers.get(name, (None, None))
        peer_value = percentile(found, 0.5) if found else None
        more = copy_ms if name == "total" else 0
        goal = round(case.goals[name] + more, 1) if name in case.goals else None
        goal_p99 = round(P99_GOALS[name] + more, 1) if goal and name in P99_GOALS else None
        rows.append({"bench": "recovery", "case": case.name, "metric": name,
                     "unit": "ratio" if name == "next step" else "ms", "kills": len(values),
                     "value": round(value, 3), "p99": round(percentile(values, 0.99), 3),
                     "max": round(max(values), 3), "peer": peer,
                     "peer_value": round(peer_value, 3) if peer else None,
                     "peer_p99": round(percentile(found, 0.99), 3) if peer else None,
                     "ratio": round(value / peer_value, 2) if peer else None,
                     "goal": goal, "goal_p99": goal_p99})
    return rows


def show(rows, bench):
    print(f"recovery: {rows[0]['case']}, {rows[0]['kills']} kills, milliseconds")
    print(f"{'':18}{'median':>9}{'p99':>9}{'max':>9}{'goal':>7}{'p99':>7}  peer: median, p99")
    for row in rows:
        goal, goal_p99 = ("" if row[k] is None else f"{row[k]:.1f}" for k in ("goal", "goal_p99"))
        peer = ("" if row["peer"] is None else
                f"{row['peer']}: {row['peer_value']:.2f}, {row['peer_p99']:.2f}")
        print(f"{row['metric']:18}{row['value']:9.2f}{row['p99']:9.2f}{row['max']:9.2f}"
              f"{goal:>7}{goal_p99:>7}  {peer}")
    print("victims died " + ", ".join(f"{p}: {n}" for p, n in bench.died_in.most_common())
          + "; as rank " + ", ".join(f"{r}: {n}" for r, n in sorted(bench.ranks.items())))
    if bench.step_ms is not None:
        print(f"an undisturbed step of {bench.case.np - 1} ranks: {bench.step_ms:.1f} ms")


def measure(build, folder, case, options):
    """All of one case; prints it and returns its rows."""
    with contextlib.ExitStack() as stack:
        network = (stack.enter_context(networks.Network(len(case.slots)))
                   if options.namespaces else None)
        bench = Bench(build, folder, case, random.Random(options.seed), network)
        if "next step" in case.goals:
            bench.measure_undisturbed()
        floor = bench.measure_floor(max(options.kills, 30))
        copy_ms = 0
        if case.copied:
            probe = bench.copy_probe_ms()
            print(f"copy probe: {case.np - 1} processes, {case.copied / MIB:.0f} MiB each: "
                  f"{probe:.1f} ms")
            copy_ms = 1.2 * probe
        samples = []
        for sample in bench.kills(options.kills):
            samples.append(sample)
            if options.verbose:
                print(f"  kill {len(samples)}: " + ", ".join(
                    f"{name} {value:.2f}" for name, value in sample.items()), flush=True)
        rows = table(case, samples, floor, copy_ms)
        show(rows, bench)
    return rows


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cases", default="4,8,4in,8in,4gib",
                        help="some of 4,8,4in,8in,4gib")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--namespaces", action="store_true",
                        help="each host in network and IPC namespaces of its own")
    parser.add_argument("--reduce-bytes", type=int, default=64 * MIB)
    parser.add_argument("--state-bytes", type=int, default=64 * MIB)
    parser.add_argument("--ballast-bytes", type=int, default=4096 * MIB)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="a line for each kill")
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    options = parser.parse_args()
    unknown = set(options.cases.split(",")) - set(cases(options))
    if unknown:
        parser.error(f"--cases {','.join(sorted(unknown))}: there are {', '.join(cases(options))}")
    if options.namespaces and networks.why_not() is not None:
        parser.error(f"--namespaces: {networks.why_not()}")
    return options


def main():
    options = parse_options()
    processes.become_subreaper()
    # SIGTERM ends it in order, like Ctrl-C: no job, busy process or folder is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    build = pathlib.Path(options.build).resolve()
    folder = tempfile.mkdtemp(prefix="eb-")
    rows = []
    try:
        for name in options.cases.split(","):
            rows += measure(build, pathlib.Path(folder) / name, cases(options)[name], options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
