"""Many jobs are started, disturbed and ended in turn; the machine is then as it was."""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import processes
import runner
from waiting import pause_until, wait_until

SOAK_RUNS = {"NothingIsLeftAfterStartStopKillCycles": 200}


def _cycle(context, number):
    ending = ("finish", "kill worker", "interrupt", "kill launcher", "kill agent")[number % 5]
    arguments = ["--steps", 60 if ending in ("finish", "kill worker") else 8000, "--step-us", 2000,
                 "--grandchild", 1]
    with context.oracle_job(arguments, min_np=1, launcher=["--grace-period", "1s"]) as job:
        status = job.wait_size(4)
        assert list(context.tmp.iterdir()), "the job keeps its sockets below TMPDIR"
        if ending == "kill worker":
            job.kill(status.members[number % 4].pid)
        elif ending == "interrupt":
            job.signal(signal.SIGINT)
        elif ending == "kill launcher":
            job.signal(signal.SIGKILL)
        elif ending == "kill agent":
            job.kill(job.agents()[0])
            job.wait_size(4, above=status.generation, timeout=30)
            job.signal(signal.SIGTERM)
        code = job.wait_exit(30)
        expected = {"finish": 0, "kill worker": 0, "interrupt": 130, "kill launcher": -9,
                    "kill agent": 143}[ending]
        assert code == expected, f"{ending}: exit {code}; {job.tail()}"
        context.expect_nothing_left(within=4.0)


def NothingIsLeftAfterStartStopKillCycles(context):  # slow
    descriptors = len(processes.open_files(os.getpid()))
    for number in range(context.runs):
        _cycle(context, number)
    assert len(processes.open_files(os.getpid())) <= descriptors + 1
    assert not processes.descendants(os.getpid())


def _nothing_runs():
    processes.reap_orphans(known=set())
    return not processes.descendants(os.getpid())


def WhatALauncherKilledInItsFirstMomentsLeavesIsGoneAfterTheNextStart(context):
    left = 0
    command = [context.program("elastic-run"), "-np", "1", context.program("oracle_worker")]
    for number in range(40):
        with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(context.tmp)},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL) as process:
            pause_until(time.monotonic() + 0.0005 * number)
            process.kill()
        wait_until(_nothing_runs, 10, "the end of what it had started")
        left += bool(list(context.tmp.iterdir()))
        with context.oracle_job(["--steps", 1], np=1, min_np=1, hosts="localhost:1") as job:
            job.expect_exit(0, 20)
        assert not list(context.tmp.iterdir()), list(context.tmp.iterdir())
    print(f"  {left} of 40 left a folder to the next start")


def DescriptorsOfLauncherAndAgentsStayFlatOverResets(context):  # slow
    arguments = ["--steps", 8000, "--step-us", 1000]
    with context.oracle_job(arguments) as job:
        status = job.wait_size(4)
        parents = [job.pid, *job.agents()]
        counts = []
        for number in range(8):
            job.kill(status.members[number % 4].pid)
            status = job.wait_size(4, above=status.generation, timeout=60)
            counts.append([len(processes.open_files(p)) for p in parents])
        print(f"  descriptors after each reset: {counts}")
        for first, last in zip(counts[1], counts[-1]):
            assert last <= first + 2, f"descriptors grow: {counts}"
        job.signal(signal.SIGTERM)
        job.expect_exit(143, 30)


if __name__ == "__main__":
    runner.main(globals())
