"""Workers that end by themselves: their last lines arrive, and what is told is how they ended."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import runner

LAST_LINE = "last line of a worker"
# Half a second after the runtime was shut down: longer than a dying process is given.
SLOW_EXIT = ["--last-line-us", 500000, "--fail-code", 7]
# A shell that ends later than its trainer, by a TERM trap; and one that has none and ends at once.
TRAP = "trap 'sleep 0.5; echo wrapper has saved' TERM; \"$@\" & wait; wait; exit 3"
NO_TRAP = '"$@"; exit 3'


def AWorkerThatReturnsAnErrorExitsByItselfAndItsOwnCodeIsTold(context):
    arguments = ["--steps", 2000, "--step-us", 1000, "--fail-at", 50, "--fail-slot", 1, *SLOW_EXIT]
    with context.oracle_job(arguments, np=2, min_np=2, hosts="localhost:2") as job:
        job.wait_line(r"died: exit code 7", 20)
        # At the same step each time: once after commits, then three times without a new one.
        job.expect_exit(1, 30)
        assert job.output.count(LAST_LINE) == 4, job.output
        assert "SIGKILL" not in job.output, job.output
        assert "--grace-period" not in job.output, job.output


def _interrupt(job, line):
    """Two workers are interrupted, and both print `line` before they exit by themselves."""
    job.wait_size(2)
    start = time.monotonic()
    job.signal(signal.SIGINT)
    job.expect_exit(130, 20)
    assert job.output.count(line) == 2, job.output
    assert time.monotonic() - start < 10, "nobody waits for the end of the grace period"


def WorkersThatReturnOnSigtermPrintTheirLastLineWithinTheGracePeriod(context):
    arguments = ["--steps", 20000, "--step-us", 1000, "--on-term", "return", *SLOW_EXIT]
    with context.oracle_job(arguments, np=2, min_np=2, hosts="localhost:2",
                            launcher=["--grace-period", "15s"]) as job:
        _interrupt(job, LAST_LINE)


def AWrappersTrapAndWhatADeadShellLeftHaveTheGracePeriod(context):
    for script, arguments, line in (
            (TRAP, [], "wrapper has saved"),
            (NO_TRAP, ["--on-term", "return", *SLOW_EXIT], LAST_LINE)):
        command = ["bash", "-c", script, "wrapper", context.program("oracle_worker"),
                   "--log", context.new_folder("log"), "--steps", 20000, *arguments]
        with context.job(["-np", "2", "-H", "localhost:2", "--grace-period", "15s"],
                         command) as job:
            _interrupt(job, line)


def AWorkerThatIsKilledIsToldAsKilled(context):
    arguments = ["--steps", 2000, "--step-us", 2000]
    with context.oracle_job(arguments, np=2, min_np=2, hosts="localhost:2") as job:
        job.kill(job.wait_size(2).members[1].pid)
        job.wait_line(r"died: signal 9 \(SIGKILL\)", 20)


if __name__ == "__main__":
    runner.main(globals())
