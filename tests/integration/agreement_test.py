"""What all ranks must agree on at a commit."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import oracle
import runner


def _uneven(context, how, pattern):
    arguments = ["--steps", 20000, "--step-us", 1000, "--uneven-at", 50, "--uneven-slot", 1,
                 "--uneven", how]
    with context.oracle_job(arguments, np=2, min_np=1, hosts="localhost:2") as job:
        job.expect_exit(1, 20)
        line = job.find("job ended: .*(?:" + pattern + ")")
        assert line is not None, job.output
        print("  " + line.text)


def RanksThatCommitDifferentStepsEndTheJobWithBothNamed(context):
    _uneven(context, "label", r"rank 1 has committed step 1050 .*rank 0 step 51 .*"
            r"\(exit code 1\)")


def ARankThatCommitsTwiceEndsTheJobInsteadOfWaitingForEver(context):
    _uneven(context, "twice", r"rank 1 has committed step 5[12] .*rank 0 step 5[01] .*|"
            r"rank 1 called commit .*")


def ARankThatReturnsEarlyEndsTheJobInsteadOfBeingWaitedFor(context):
    _uneven(context, "return", r"rank 1 \(.*\) returned with step 50, .* rank 0 \(.*\) has "
            r"committed|rank 0 .*step 51 .*rank 1 step 50")


def _newest_step(status):
    newest = status.raw.get("newest")
    return int(newest.get("step", 0)) if newest else -1


def _ends(job):
    """The steps at which the workers' functions returned."""
    return [end[3] for log in oracle.read_logs(job.logs) for end in log.ends]


def AStopThatOneRankAsksForEndsAllAtTheSameStep(context):
    arguments = ["--steps", 20000, "--step-us", 1000, "--stop-at", 80, "--stop-slot", 1]
    with context.oracle_job(arguments, np=4, min_np=2, hosts="localhost:4") as job:
        job.expect_exit(0, 20)
        # Asked for behind the collective of its own step, it is agreed on by the next one.
        assert _ends(job) == [82] * 4, _ends(job)


def AnOperatorsStopEndsAllRanksAtTheSameStep(context):
    arguments = ["--steps", 20000, "--step-us", 1000, "--jitter-us", 3000, "--on-term", "stop"]
    with context.oracle_job(arguments, np=4, min_np=2, hosts="localhost:2,127.0.0.2:2",
                            launcher=["--grace-period", "15s"]) as job:
        job.wait_status(lambda s: _newest_step(s) >= 20, what="step 20")
        start = time.monotonic()
        job.signal(signal.SIGINT)
        job.expect_exit(130, 20)
        assert time.monotonic() - start < 10, "nobody waits for the end of the grace period"
        ends = _ends(job)
        assert len(ends) == 4 and len(set(ends)) == 1, ends


def AWorkerThatWaitsForOthersLeavesAtOnceWhenTheJobIsStopped(context):
    arguments = ["--steps", 20000, "--step-us", 1000, "--on-term", "stop",
                 "--newcomer-us", 60_000_000]
    with context.oracle_job(arguments, np=2, min_np=2, hosts="localhost:2",
                            launcher=["--grace-period", "15s"]) as job:
        job.wait_status(lambda s: _newest_step(s) >= 5, what="step 5")
        (job.logs / "began").touch()
        job.kill(job.wait_size(2).members[1].pid)
        job.wait_line(r"waits: need 2 workers .*, have 1", 20)
        start = time.monotonic()
        job.signal(signal.SIGINT)
        job.expect_exit(130, 20)
        print(f"  ended after {time.monotonic() - start:.2f} s")
        assert time.monotonic() - start < 10, "it waits for nothing"


if __name__ == "__main__":
    runner.main(globals())
