"""All workers, or all agents, are lost at once; and one more right after a restore."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import oracle
import processes
import runner
from waiting import pause_until, wait_until

SOAK_RUNS = {
    "AllWorkersAtOnceAreRestartedFromTheAgentsCopies": 20,
    "AllAgentsAtOnceEndTheJobWithFiveWithinFiveSeconds": 20,
    "ASecondKillInTheFirstStepAfterARestoreLosesNothing": 50,
}


def _newest_step(status):
    newest = status.raw.get("newest")
    return newest["step"] if newest else -1


def AllWorkersAtOnceAreRestartedFromTheAgentsCopies(context):  # slow
    arguments = ["--steps", 500, "--step-us", 3000]
    for number in range(context.runs):
        with context.oracle_job(arguments) as job:
            before = job.wait_status(lambda s: s.size == 4 and _newest_step(s) > 20, 20,
                                     "twenty committed steps")
            victims = [w.pid for w in before.members]
            pause_until(time.monotonic() + context.random.uniform(0, 0.3))
            job.kill_all(victims)
            after = job.wait_size(4, above=before.generation, timeout=30)
            assert not set(victims) & {w.pid for w in after.members}
            job.expect_exit(0, 60)
            logs = context.check_oracle(job, arguments)
            # (generation, rank, size, step, ns): where the new processes began.
            begun = [log.begins[0][3] for log in logs if log.pid not in victims]
            assert begun and min(begun) >= _newest_step(before), \
                f"run {number}: began at {begun}, committed was {_newest_step(before)}"


def AllAgentsAtOnceEndTheJobWithFiveWithinFiveSeconds(context):
    """Nobody is left who holds what was committed, and nothing begins at zero again (P19)."""
    arguments = ["--steps", 8000, "--step-us", 3000]
    for _ in range(context.runs):
        with context.oracle_job(arguments) as job:
            before = job.wait_status(lambda s: s.size == 4 and _newest_step(s) > 5, 20,
                                     "a few committed steps")
            below, agents = job.below(), job.agents()
            start = time.monotonic()
            job.kill_all(agents)
            job.expect_exit(5, 8)
            took = time.monotonic() - start
            assert took < 5, f"the job took {took:.1f} s to end"
            print(f"  ended after {took:.2f} s")
            assert not [p for p in below if processes.alive(p)], "something of it lives"
            logs = oracle.read_logs(job.logs)
            again = [log.begins for log in logs if log.pid not in {w.pid for w in before.members}]
            assert not any(again), f"somebody began anew: {again}"


def AllGuardiansAtOnceEndTheJobWithFiveWithinFiveSeconds(context):
    """Each takes its agent along, and that the copies."""
    arguments = ["--steps", 8000, "--step-us", 3000]
    with context.oracle_job(arguments) as job:
        before = job.wait_status(lambda s: s.size == 4 and _newest_step(s) > 5, 20,
                                 "a few committed steps")
        guardians = {job.agent_and_guardian_of(w.pid)[1] for w in before.members}
        assert len(guardians) == 2
        start = time.monotonic()
        job.kill_all(guardians)
        job.expect_exit(5, 8)
        print(f"  ended after {time.monotonic() - start:.2f} s")
        assert time.monotonic() - start < 5


def _last_begin(job, pid):
    """(generation, rank, size, step, ns) of where that worker's function was last called."""
    log = next((log for log in oracle.read_logs(job.logs) if log.pid == pid), None)
    return log.begins[-1] if log is not None and log.begins else (0, 0, 0, 0, 0)


def second_kill_in_the_first_step_after_a_restore(context, count, state=()):
    """`state` are further flags of the worker, as for another kind of state."""
    arguments = ["--steps", 120, "--step-us", 20000, "--state-bytes", 1 << 20, *state]
    for _ in range(count):
        with context.oracle_job(arguments) as job:
            before = job.wait_status(lambda s: s.size == 4 and _newest_step(s) > 5, 20,
                                     "a few committed steps")
            pids = {w.rank: w.pid for w in before.members}
            first, second = context.random.sample(range(4), 2)
            job.kill(pids[first])
            wait_until(lambda: _last_begin(job, pids[second])[0] > before.generation, 10,
                       "the next generation", every=0.001)
            begun = _last_begin(job, pids[second])
            # The step takes at least 20 ms, so it isn't over yet.
            pause_until(time.monotonic() + context.random.uniform(0, 0.015))
            job.kill(pids[second])
            kept = {pids[r] for r in range(4) if r not in (first, second)}
            after = job.wait_size(4, above=begun[0], timeout=30)
            assert kept <= {w.pid for w in after.members}, f"{kept} did not stay"
            job.expect_exit(0, 60)
            context.check_oracle(job, arguments)


def ASecondKillInTheFirstStepAfterARestoreLosesNothing(context):  # slow
    second_kill_in_the_first_step_after_a_restore(context, context.runs)


if __name__ == "__main__":
    runner.main(globals())
