"""Many jobs are started, disturbed and ended in turn; the machine is then as it was."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import processes
import runner

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
