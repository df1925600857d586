"""Runs the tests of one file: every function whose name begins with a capital letter.

  tests/integration/kill_test.py --build build/dev [NAME...] [--runs N | --soak] [--seed S] [--keep]

A test takes a Context. After each test nothing of its jobs may be left: no process, no named
socket, no file of ours, no /dev/shm entry; that is checked here, so that no test can forget it.

A test that repeats something repeats it `context.runs` times. How often is said in its file, in one
place that scripts/soak reads, too:

  SOAK_RUNS = {"NameOfTheTest": 50}

`--soak` runs these tests only, that often each; without it they do a tenth (5 here), other tests
have RUNS. `--runs N` overrides both.
"""

import argparse
import faulthandler
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import traceback

import job as job_module
import leftovers
import oracle
import processes
from waiting import TimedOut, wait_until

RUNS = 5
SOAK_SECONDS_MAX = 6 * 3600.0


class Context:
    """What a test needs: programs, a folder of its own, random numbers that can be repeated."""

    def __init__(self, build, folder, runs, seed):
        self.build = pathlib.Path(build).resolve()
        self.folder = pathlib.Path(folder)
        # Jobs get it as TMPDIR, so that what they leave is told apart from other programs' files.
        # Short: the names of Unix sockets are limited to 107 bytes.
        self.tmp = self.folder / "t"
        self.tmp.mkdir()
        self.before = leftovers.Snapshot(self.tmp)
        self.runs = runs
        self.random = random.Random(seed)
        self._made = 0
        self._truths = {}

    def program(self, name):
        for folder in ("bin", "tests/bin"):
            path = self.build / folder / name
            if path.exists():
                return str(path)
        raise FileNotFoundError(f"{name} is not built in {self.build}")

    def new_folder(self, name):
        self._made += 1
        folder = self.folder / f"{self._made:03d}-{name}"
        folder.mkdir()
        return folder

    def job(self, arguments, command, **options):
        options["env"] = {"TMPDIR": str(self.tmp), **options.get("env", {})}
        return job_module.Job(self.build, arguments, command, **options)

    def oracle_job(self, arguments, np=4, min_np=2, hosts=job_module.HOSTS, launcher=(), **options):
        """A job of oracle workers with these arguments; `logs` is where they log."""
        folder = self.new_folder("oracle")
        job = self.job(["-np", str(np), "--min-np", str(min_np), "-H", hosts, *launcher, "--"],
                       [self.program("oracle_worker"), "--log", str(folder), *map(str, arguments)],
                       **options)
        job.logs = folder
        return job

    def check_oracle(self, job, arguments):
        """Every committed sample of the job counted exactly once; returns its logs."""
        kept, i = [], 0
        names = [str(a) for a in arguments]
        while i < len(names):  # what decides the order of samples, and nothing else
            if names[i] in ("--steps", "--samples", "--batch", "--seed"):
                kept += names[i:i + 2]
            i += 2
        key = tuple(kept)
        if key not in self._truths:
            self._truths[key] = oracle.undisturbed(self.program("oracle_worker"), kept,
                                                   str(self.new_folder("truth")))
        logs = oracle.read_logs(job.logs)
        oracle.check(logs, self._truths[key])
        return logs

    def expect_nothing_left(self, within=2.0):
        """Fails if a process, socket or file is there that was not there before the test."""
        def left():
            processes.reap_orphans(known=set())
            return (processes.descendants(os.getpid()),
                    leftovers.Snapshot(self.tmp).new_since(self.before))
        try:
            wait_until(lambda: not any(left()), within, "")
        except TimedOut:
            pids, things = left()
            raise AssertionError(f"left behind after {within} s: processes "
                                 f"{processes.describe(pids)}; {things}") from None


def runs_of(name, soak_runs, options):
    """How often a test repeats what it repeats."""
    if options.runs is not None:
        return options.runs
    whole = soak_runs.get(name)
    if whole is None:
        return RUNS
    return whole if options.soak else -(-whole // 10)


def run_one(name, function, runs, options):
    folder = tempfile.mkdtemp(prefix="et-")
    context = Context(options.build, folder, runs, options.seed)
    start = time.monotonic()
    try:
        function(context)
        context.expect_nothing_left()
        error = None
    except Exception:  # noqa: BLE001 (any failure is reported with its trace)
        error = traceback.format_exc()
    seconds = time.monotonic() - start
    if error is None:
        print(f"passed: {name} ({seconds:.1f} s)", flush=True)
    else:
        print(f"FAILED: {name} ({seconds:.1f} s)\n{error}", flush=True)
    if options.keep:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return error is None


def main(namespace):
    parser = argparse.ArgumentParser(description=namespace["__doc__"])
    parser.add_argument("names", nargs="*", help="tests to run; all if none")
    parser.add_argument("--build", required=True, help="build folder with bin/elastic-run")
    parser.add_argument("--runs", type=int, default=None, help="runs of the repeating tests")
    parser.add_argument("--soak", action="store_true",
                        help="the tests that SOAK_RUNS of the file names, as often as it says")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true", help="keep the tests' folders")
    parser.add_argument("--timeout", type=float, default=None,
                        help="seconds; dump stacks, exit then (600; 6 hours with --soak)")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed {options.seed} (repeat with --seed {options.seed})", flush=True)
    limit = options.timeout or (SOAK_SECONDS_MAX if options.soak else 600)
    faulthandler.dump_traceback_later(limit, exit=True)
    processes.become_subreaper()
    tests = {n: f for n, f in namespace.items() if n[0].isupper() and callable(f)
             and getattr(f, "__module__", "") == "__main__"}
    soak_runs = namespace.get("SOAK_RUNS", {})
    unknown = [n for n in [*options.names, *soak_runs] if n not in tests]
    if unknown:
        sys.exit(f"no test {unknown}; there are {sorted(tests)}")
    chosen = options.names or (soak_runs if options.soak else tests)
    results = [run_one(n, f, runs_of(n, soak_runs, options), options) for n, f in tests.items()
               if n in chosen]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    sys.exit(0 if all(results) and results else 1)
