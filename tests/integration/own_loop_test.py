"""Programs with a loop and a communication of their own: elastic_poll, put and get."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import job as job_module
import runner

SOAK_RUNS = {"AWorkerOfAnOwnLoopIsKilledAndNoSampleIsLost": 20}


def _job(context, arguments, np=4):
    folder = context.new_folder("own")
    job = context.job(["-np", str(np), "--min-np", "2", "-H", job_module.HOSTS, "--"],
                      [context.program("own_loop_worker"), "--log", str(folder),
                       *map(str, arguments)])
    job.logs = folder
    return job


def _worker_of(status, host):
    return next(w for w in status.members if w.host == host)


def AWorkerOfAnOwnLoopIsKilledAndNoSampleIsLost(context):
    arguments = ["--steps", 500, "--step-us", 3000, "--put-us", 2000]
    for number in range(context.runs):
        with _job(context, arguments) as job:
            before = job.wait_size(4)
            pids = {w.rank: w.pid for w in before.members}
            victim = pids.pop(number % 4)
            job.kill(victim)
            after = job.wait_size(4, above=before.generation)
            assert set(pids.values()) <= {w.pid for w in after.members}, "a survivor was replaced"
            job.expect_exit(0, 60)
        context.check_oracle(job, arguments)
        # The newcomer was let in at a commit, which the others were told.
        assert job.find("own_loop: reformed"), job.output


def Scenario64KeysOfAnEarlierGenerationAreNeverSeen(context):
    """Workers check what they get (OwnMesh). Counters of the two hosts differ; rank 0 puts late."""
    arguments = ["--steps", 1200, "--step-us", 3000, "--put-us", 20000]
    with _job(context, arguments) as job:
        status = job.wait_size(4)
        hosts = sorted({w.host for w in status.members})
        # Host b's worker twice, host a's once, then rank 0, which is who puts.
        for host in (hosts[1], hosts[1], hosts[0], None):
            victim = status.members[0] if host is None else _worker_of(status, host)
            job.kill(victim.pid)
            status = job.wait_size(4, above=status.generation)
        job.expect_exit(0, 90)
    assert job.find("own_mesh: ") is None, job.output
    context.check_oracle(job, arguments)


def AForkedHelperIsToldAndDisturbsNothing(context):
    """It holds copies of everything the worker has open, and lives on when that is killed."""
    arguments = ["--steps", 300, "--step-us", 3000, "--helper", 1]
    with _job(context, arguments) as job:
        before = job.wait_size(4)
        job.wait_line("own_loop: helper is refused, rank -1")
        job.kill(before.members[1].pid)
        job.wait_size(4, above=before.generation)
        job.expect_exit(0, 60)
    assert job.find("helper is not refused") is None, job.output
    context.check_oracle(job, arguments)


def AllRanksAreToldOfAStopAfterTheSameCommit(context):
    with _job(context, ["--steps", 100000, "--stop-step", 50]) as job:
        job.expect_exit(0, 60)
    told = re.findall(r"own_loop: stops after step (\d+)", job.output)
    assert len(told) == 4 and len(set(told)) == 1 and int(told[0]) in (50, 51), job.output


def ANewcomerIsLetInByACommitThatIsMadeBecauseItIsWanted(context):
    """The example's own commits are so far apart that none of them comes."""
    with context.job(["-np", "4", "--min-np", "2", "-H", job_module.HOSTS, "--"],
                     [context.program("own_loop"), "1000000", "1000000000"]) as job:
        before = job.wait_size(4)
        job.kill(before.members[1].pid)
        job.wait_size(4, above=before.generation)
        job.wait_line("rank 0 of 4 from here")


if __name__ == "__main__":
    runner.main(globals())
