"""How a job ends: in order, with a worker that leaves too early, with too few workers."""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import oracle
import runner
from waiting import wait_until


def AnUndisturbedJobEndsWithZeroAndEverySampleOnce(context):
    arguments = ["--steps", 200, "--step-us", 1000]
    for np in (1, 2, 4):
        with context.oracle_job(arguments, np=np, min_np=np, hosts=f"localhost:{np}") as job:
            job.expect_exit(0)
            logs = context.check_oracle(job, arguments)
            assert len(logs) == np
            assert {log.final[0] for log in logs} == {logs[0].begins[0][0]}, "one generation only"


def TwoHundredWorkersOfOneHostStartWithoutTroubleAndEnd(context):  # slow
    # The agent answers each of them within ten seconds, or they give up.
    with context.oracle_job(["--steps", 5, "--step-us", 1000], np=200, min_np=200,
                            hosts="localhost:200") as job:
        job.expect_exit(0, 60)
        assert "error" not in job.output and "refuses" not in job.output, job.output


def AWorkerThatExitsZeroInMidTrainingIsAFailureThatNamesTheMissingCall(context):
    arguments = ["--steps", 2000, "--step-us", 2000, "--leave-at", 100, "--leave-slot", 1]
    with context.oracle_job(arguments, np=2, min_np=2, hosts="localhost:2") as job:
        line = job.wait_line(r"(?i)exit(ed)?\b.*\b0\b.*elastic_(run|finish)|elastic_(run|finish).*"
                             r"exit(ed)?\b.*\b0\b", 20)
        print(f"  says: {line.text}")
        job.expect_exit(1, 60)


def ADeathBetweenTheFirstAndTheLastFinishedReportKeepsTheFinalState(context):
    arguments = ["--steps", 150, "--step-us", 1000, "--linger-rank", 2, "--linger-us", 700000]
    for victim_rank in (2, 0):  # the one that has not reported yet, and one that has
        with context.oracle_job(arguments, min_np=2) as job:
            before = job.wait_size(4)
            victim = before.members[victim_rank].pid
            wait_until(lambda: sum(bool(log.ends) for log in oracle.read_logs(job.logs)) == 4,
                       20, "all functions at their end")
            job.kill(victim)
            job.expect_exit(0, 20)
            logs = context.check_oracle(job, arguments)
            ended = [log for log in logs if log.final is not None]
            assert len(ended) == 3, f"{len(ended)} survivors ended"
            assert len(logs) == 4, "from the first report on nobody is replaced"
            again = [log for log in ended if len(log.begins) == 2]
            assert len(again) == 3, "each survivor's function is called again with the final state"


def BelowMinNpTheJobSaysWhatItWaitsForAndEndsWithThree(context):
    arguments = ["--steps", 5000, "--step-us", 2000, "--newcomer-us", 60000000]
    with context.oracle_job(arguments, np=2, min_np=2, hosts="localhost:2",
                            launcher=["--elastic-timeout", "3s", "--grace-period", "1s"]) as job:
        before = job.wait_size(2)
        (job.logs / "began").touch()
        start = time.monotonic()
        job.kill(before.members[0].pid)
        status = job.wait_status(lambda s: "min-np" in s.waits_for, 3, "the reason to wait")
        print(f"  status: {status.waits_for}")
        line = job.wait_line(r"min-np.*until|min-np.*another|min-np.*elastic-timeout", 2)
        print(f"  log: {line.text}")
        table = job.ctl("status", "--address", job.address).stdout
        assert "min-np" in table, table
        job.expect_exit(3, 15)
        assert 2.5 < time.monotonic() - start < 8, time.monotonic() - start


def AJobThatNeverGetsItsWorkersEndsWithThree(context):
    arguments = ["--start-us", 60000000]
    with context.oracle_job(arguments, np=2, min_np=2, hosts="localhost:2",
                            launcher=["--start-timeout", "2s", "--grace-period", "1s"]) as job:
        job.expect_exit(3, 15)


def ProgramsThatNeverJoinEndWithZeroAndOneWarning(context):
    with context.job(["-np", "2"], ["sh", "-c", "echo has-run"]) as job:
        job.expect_exit(0, 20)
        assert job.output.count(":has-run") == 2, f"each program runs once: {job.output}"
        warnings = [line.text for line in job.lines if "join" in line.text]
        assert len(warnings) == 1, job.output
        print(f"  warns: {warnings[0]}")


def AWorkerThatFailsBeforeAnyJoinedEndsTheJobWithOne(context):
    with context.job(["-np", "2"], ["sh", "-c", "echo is-broken; exit 7"]) as job:
        job.expect_exit(1, 20)
        assert "7" in job.output, job.output


def ProgramsThatAllDieBeforeAnyJoinedRunOnceAndAreToldInOneLine(context):
    # One that was killed may be started again while others of the first round still run.
    for script, how, most in (("echo has-run; exit 7", r"exit code 7", 4),
                              ("echo has-run; kill -9 $$", r"signal 9 \(SIGKILL\)", 8)):
        with context.job(["-np", "4", "--min-np", "1", "-H", "127.0.0.1:2,127.0.0.2:2"],
                         ["sh", "-c", script]) as job:
            job.expect_exit(1, 20)
            runs = job.output.count(":has-run")
            assert 4 <= runs <= most, f"each program runs once: {job.output}"
            told = [line.text for line in job.lines if re.search(how, line.text)]
            assert len(told) == 1, job.output
            places = re.search(rf"ended before joining the job: (.*): {how}", told[0])
            assert places and sorted(places[1].split(", ")) == [
                "127.0.0.1:0", "127.0.0.1:1", "127.0.0.2:0", "127.0.0.2:1"], told


def EqualCrashesOfAllRanksAreToldOnceWithTheirRanks(context):
    arguments = ["--steps", 1000, "--step-us", 2000]
    with context.oracle_job(arguments) as job:
        before = job.wait_size(4)
        job.kill_all([worker.pid for worker in before.members])
        line = job.wait_line(r"generation \d+: .*, from step .*, because", 20)
        cause = line.text.split("because ", 1)[1]
        assert cause.count("died: signal 9 (SIGKILL)") <= 1, cause
        job.expect_exit(0, 60)
        # Together where one generation lost them; the next one is often formed within milliseconds,
        # and tells its own. None is told twice.
        told = [line.text for line in job.lines if re.search(r"warning: rank.* died", line.text)]
        assert all(sum(f"pid {worker.pid})" in text for text in told) == 1
                   for worker in before.members), told
        context.check_oracle(job, arguments)


def LinesOfTheWorkersCarryTheirRankAndTheLastOneNeedsNoNewline(context):
    with context.job(["-np", "2"], ["sh", "-c", r"printf 'one\ntwo \303\244 three'"]) as job:
        job.expect_exit(0, 20)
        for text in ("one", "two \u00e4 three"):
            found = [line.text for line in job.lines if line.text.endswith(text)]
            assert len(found) == 2, job.output
            assert len(set(found)) == 2, f"two ranks, two prefixes: {found}"


if __name__ == "__main__":
    runner.main(globals())
