"""The start of a job: when it begins with fewer workers than wanted, and when it gives up."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import runner

STEPS = ["--steps", 1500, "--step-us", 2000]
# Slot 1 of the host that the agent runs for starts its program as late as the test says.
LATE_SLOT = 'if [ "$ELASTIC_LOCAL_RANK" = 1 ] && [ ! -e "$GATE" ]; then ' \
            'while [ ! -e "$GATE" ]; do sleep 0.05; done; fi; exec "$@"'


def _late_job(context, launcher, hosts="127.0.0.1:1,127.0.0.2:2", np=3, min_np=2):
    """A job whose worker in slot 1 of the second host starts when the file `gate` is there."""
    logs, gate = context.new_folder("oracle"), context.new_folder("gate") / "open"
    command = ["bash", "-c", LATE_SLOT, "late", context.program("oracle_worker"), "--log", logs,
               *STEPS]
    job = context.job(["-np", str(np), "--min-np", str(min_np), "-H", hosts, *launcher, "--"],
                      command, env={"GATE": str(gate)})
    job.logs, job.gate = logs, gate
    return job


def Scenario65ARoundThatNobodyJoinsAnyMoreBeginsAtTheEndOfTheWaitWithThoseThatAreReady(context):
    with _late_job(context, ["--start-timeout", "3s"]) as job:
        start = time.monotonic()
        job.wait_line(r"begins with 2 of 3 workers \(-np\) after 3s \(--start-timeout\); "
                      r"missing: 127\.0\.0\.2:1", 10)
        assert time.monotonic() - start > 2.5, job.output
        first = job.wait_size(2)
        job.gate.touch()
        job.wait_size(3, above=first.generation)
        job.expect_exit(0, 60)
        context.check_oracle(job, STEPS)


def AStartWithTooFewWorkersEndsWithExitCode3AndNamesWhatIsMissing(context):
    with _late_job(context, ["--start-timeout", "2s"], min_np=3) as job:
        job.expect_exit(3, 20)
        assert job.find(r"gave up after 2s \(--start-timeout\): need 3 workers that are ready "
                        r"\(-np\), have 2; missing: 127\.0\.0\.2:1"), job.output


def AJobGrowsBeyondNpUpToMaxNpAndKeepsItsSamples(context):
    with context.oracle_job([*STEPS, "--start-us", 100000], np=2, min_np=1,
                            launcher=["--max-np", "3"]) as job:
        job.wait_line(r"2 workers \(at least 1, at most 3\)", 10)
        grown = job.wait_size(3)
        job.kill(grown.members[1].pid)
        job.wait_size(3, above=grown.generation)
        job.expect_exit(0, 60)
        sizes = {size for log in context.check_oracle(job, STEPS) for _, _, size, _, _ in log.steps}
        assert max(sizes) == 3, f"sizes {sizes}; four slots, but --max-np 3"


def Scenario61ANewcomerThatComesFirstByNameAndOrderNeverBecomesRankZero(context):
    # Slot 0 comes first by order; it is late, and joins the others when they have state.
    late = LATE_SLOT.replace('"$ELASTIC_LOCAL_RANK" = 1', '"$ELASTIC_LOCAL_RANK" = 0')
    logs, gate = context.new_folder("oracle"), context.new_folder("gate") / "open"
    command = ["bash", "-c", late, "late", context.program("oracle_worker"), "--log", logs, *STEPS]
    with context.job(["-np", "3", "--min-np", "1", "-H", "localhost:3", "--start-timeout", "2s",
                      "--"], command, env={"GATE": str(gate)}) as job:
        job.logs = logs
        first = job.wait_size(2)
        assert [w.slot for w in first.members] == [1, 2]
        gate.touch()
        grown = job.wait_size(3, above=first.generation)
        assert [w.slot for w in grown.members] == [1, 2, 0], "newcomers come behind"
        job.kill(grown.members[0].pid)
        after = job.wait_size(3, above=grown.generation)
        assert [w.slot for w in after.members] == [2, 0, 1], "survivors keep their order"
        assert after.members[0].pid == first.members[1].pid, "nobody else is started again"
        job.expect_exit(0, 60)
        context.check_oracle(job, STEPS)


if __name__ == "__main__":
    runner.main(globals())
