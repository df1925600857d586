"""All workers, all agents or all guardians are lost at once."""

import os
import signal
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


def _kill_at_once(job, pids, all_end):
    """The launcher is stopped meanwhile: it brings an agent back within 15 ms, and two signals may
    be as far apart on a busy machine. Then nothing would be lost: the others hold the state."""
    job.signal(signal.SIGSTOP)
    job.kill_all(pids)
    wait_until(lambda: not any(processes.alive(p) for p in all_end), 3,
               lambda: "the end of " + processes.describe(all_end), every=0.001)
    job.signal(signal.SIGCONT)


def AllAgentsAtOnceEndTheJobWithFiveWithinFiveSeconds(context):
    """Nobody is left who holds what was committed, and nothing begins at zero again (P19)."""
    arguments = ["--steps", 8000, "--step-us", 3000]
    for _ in range(context.runs):
        with context.oracle_job(arguments) as job:
            before = job.wait_status(lambda s: s.size == 4 and _newest_step(s) > 5, 20,
                                     "a few committed steps")
            below, agents = job.below(), job.agents()
            start = time.monotonic()
            _kill_at_once(job, agents, agents)
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
        _kill_at_once(job, guardians, job.agents())
        job.expect_exit(5, 8)
        print(f"  ended after {time.monotonic() - start:.2f} s")
        assert time.monotonic() - start < 5


if __name__ == "__main__":
    runner.main(globals())
