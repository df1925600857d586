"""When a job gives up by itself, and what lets it go on: crash loops, and state that is lost."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import runner

FAILS = ["--steps", 2000, "--step-us", 1000, "--fail-at", 50, "--fail-slot", 1, "--fail-code", 7]
TRAINS = ["--steps", 1500, "--step-us", 2000]


def _generations(job):
    return sum(": 2 members (ranks" in line.text for line in job.lines)


def ACrashLoopEndsAfterAsManyFailuresWithoutACommitAsTheFlagSays(context):
    for limit in (1, 2):
        with context.oracle_job(FAILS, np=2, min_np=2, hosts="localhost:2",
                                launcher=["--no-progress-limit", str(limit)]) as job:
            job.expect_exit(1, 30)
            failed = "1 generation failed" if limit == 1 else "2 generations in a row failed"
            assert job.find(failed + r" without a newly committed step \(--no-progress-limit\); "
                            r"last: .*exit code 7"), job.output
            # The first one failed after commits, and is not counted.
            assert _generations(job) == limit + 1, job.output


def WithoutALimitACrashLoopGoesOnUntilItIsStopped(context):
    with context.oracle_job(FAILS, np=2, min_np=2, hosts="localhost:2",
                            launcher=["--no-progress-limit", "0"]) as job:
        job.wait_status(lambda status: status.generation >= 5, 60, "a fifth generation")
        job.signal(15)
        job.expect_exit(143, 30)


def StateThatIsLostEndsTheJobWithFiveAndNamesTheFlagThatBeginsAnew(context):
    with context.oracle_job(TRAINS, np=2, min_np=1, hosts="localhost:2") as job:
        job.wait_size(2)
        job.kill(job.agents()[0])
        job.expect_exit(5, 5)
        assert job.find(r"nothing is restarted from zero by itself; --allow-restart-from-zero "
                        r"would begin anew"), job.output


def WithTheFlagALostJobBeginsAnewWithFreshProcessesAndExactSamples(context):  # slow
    with context.oracle_job(TRAINS, np=2, min_np=1, hosts="localhost:2",
                            launcher=["--allow-restart-from-zero"]) as job:
        before = job.wait_size(2)
        job.kill(job.agents()[0])
        # The newest step is named if the server had heard of one yet.
        job.wait_line(r"no copy of the committed state(, whose newest step was \d+,)? is left: the "
                      r"job begins anew", 10)
        # The server waits until nothing of the lost agent can live, 31 s (P11).
        job.wait_line(r"generation \d+: \d members? \(.*\), from the beginning, because", 45)
        after = job.wait_size(2, above=before.generation)
        assert not {w.pid for w in before.members} & {w.pid for w in after.members}
        job.expect_exit(0, 60)
        context.check_oracle(job, TRAINS)


if __name__ == "__main__":
    runner.main(globals())
