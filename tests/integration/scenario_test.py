"""Cases that other systems' users reported (the numbers are those of our collection), replayed with
real processes: what went wrong there must not happen here."""

import collections
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import network as networks
import oracle
import page as pages
import processes
import runner
from standing import Host, StandingJob
from waiting import pause_until, wait_until

SOAK_RUNS = {
    "Scenario57NewcomerIsAdmittedAtAStepThatAllOldRanksAgreeOn": 100,
    "Scenario60EachNewRankZeroTakesOver": 20,
    "Scenario68AllWorkersOrHalfOfThemStoppedAtOnce": 10,
    "Scenario72SurvivorsLeaveTheCollectiveOfAStoppedRank": 10,
    "Scenario82ProgressOfDepartedRanksIsKept": 40,
}


def _pids(status):
    return {w.rank: w.pid for w in status.members}


def _newest(status):
    newest = status.raw.get("newest")
    return newest["step"] if newest else -1


# ---- 57 ------------------------------------------------------------------------------------------
def _check_growth(logs, generation):
    """All members of `generation` began it with the same step, and nobody waited long for that."""
    begins = [(begin, log) for log in logs for begin in log.begins if begin[0] == generation]
    entered = {b[3] for b, _ in begins}
    # Old ranks that pass the boundary don't begin anew: they log the next step in it.
    for log in logs:
        steps = [s[3] for s in log.steps if s[0] == generation]
        entered |= {min(steps)} if steps else set()
    assert len(entered) == 1, f"generation {generation} was begun at steps {sorted(entered)}"


def Scenario57NewcomerIsAdmittedAtAStepThatAllOldRanksAgreeOn(context):  # slow
    """Ranks of very different speed; a replacement is ready at any moment of their steps, once
    while a rank is away in a long validation. Horovod's old ranks left at different steps."""
    for number in range(context.runs):
        validation = number % 3 == 2
        arguments = ["--steps", 25, "--step-us", 0, "--jitter-us", 300000,
                     "--newcomer-us", context.random.randrange(1000000)]
        if validation:
            arguments = ["--steps", 40, "--step-us", 20000, "--newcomer-us", 100000,
                         "--hold-at", 20, "--hold-slot", 1, "--hold-us", 2000000]
        with context.oracle_job(arguments) as job:
            before = job.wait_status(lambda s: s.size == 4 and _newest(s) >= 2, 20, "two steps")
            (job.logs / "began").touch()
            if validation:
                job.wait_status(lambda s: _newest(s) >= 19, 20, "the step of the validation")
            victim = before.members[context.random.randrange(4)]
            job.kill(victim.pid)
            grown = job.wait_size(4, above=before.generation + 1, timeout=30)
            job.expect_exit(0, 60)
            logs = context.check_oracle(job, arguments)
            _check_growth(logs, grown.generation)
            assert len(logs) == 5, "one replacement, nobody restarted"
            assert not job.find(r"(?i)stall|accus"), job.output


# ---- 60 ------------------------------------------------------------------------------------------
def Scenario60EachNewRankZeroTakesOver(context):  # slow
    """Rank 0 dies again and again; its successor has never been rank 0. The state comes from a
    survivor, which is what the exact samples show, and no newcomer gets rank 0."""
    rounds = max(4, context.runs)
    for np in (2, 3):
        arguments = ["--steps", 400 * rounds, "--step-us", 3000]
        with context.oracle_job(arguments, np=np, min_np=1,
                                hosts=",".join(f"127.0.0.{i + 1}:1" for i in range(np))) as job:
            status = job.wait_size(np)
            for _ in range(rounds):
                pids, step = _pids(status), _newest(status)
                job.kill(pids[0])
                after = job.wait_status(
                    lambda s: s.size == np and s.generation > status.generation + 1
                    and _newest(s) > step, 60, "the replacement's generation commits")
                assert _pids(after)[0] == pids[1], f"{_pids(after)} after {pids}"
                status = after
            job.expect_exit(0, 120)
            context.check_oracle(job, arguments)


# ---- 68 ------------------------------------------------------------------------------------------
HEARTBEAT_LIMIT = 1.0


def Scenario68AllWorkersOrHalfOfThemStoppedAtOnce(context):
    """Stopped for twice the limit, then all or half are continued; or all killed at once: each is a
    loss of every worker, nobody of the old ones lives on, and the agents' copies bring them back.
    """
    arguments = ["--steps", 1500, "--step-us", 3000]
    for number in range(max(3, context.runs)):
        with context.oracle_job(arguments, launcher=["--heartbeat-timeout", "1s"]) as job:
            before = job.wait_status(lambda s: s.size == 4 and _newest(s) > 5, 20, "a few steps")
            old = [processes.Target(pid, job.pid) for pid in _pids(before).values()]
            for target in old:
                target.send(signal.SIGKILL if number % 3 == 2 else signal.SIGSTOP)
            pause_until(time.monotonic() + 2 * HEARTBEAT_LIMIT)
            for target in old[:4 if number % 3 == 0 else 2]:
                try:
                    target.send(signal.SIGCONT)
                except ProcessLookupError:
                    pass  # lost at the first missed beat, and killed
            after = job.wait_size(4, above=before.generation, timeout=30)
            ghosts = [t.pid for t in old if processes.alive(t.pid)]
            assert not ghosts and not set(_pids(after).values()) & {t.pid for t in old}
            job.expect_exit(0, 60)
            context.check_oracle(job, arguments)
            for target in old:
                target.close()


# ---- 72 ------------------------------------------------------------------------------------------
FOUR_HOSTS = ",".join(f"127.0.0.{i}:1" for i in range(1, 5))
BIG = ["--reduce-bytes", 64 << 20]


def _await_a_step_without(job, pid, before, within):
    """Returns when the others have a generation without that process, whose rank is named."""
    start = time.monotonic()
    after = job.wait_status(lambda s: s.generation > before.generation
                            and pid not in _pids(s).values(), within, "the others go on")
    print(f"  the others left the collective after {time.monotonic() - start:.2f} s")
    assert set(_pids(before).values()) - {pid} <= set(_pids(after).values())
    assert job.find(r"rank 2 \("), f"the log names rank 2:\n{job.tail()}"
    return after


def Scenario72SurvivorsLeaveTheCollectiveOfAStoppedRank(context):  # slow
    """No call of theirs has a deadline, which is more than torch's 30 minutes. Once the worker is
    stopped, once its host with it."""
    arguments = ["--steps", 30, "--step-us", 3000, *BIG]
    for number in range(max(2, context.runs)):
        with context.oracle_job(arguments, hosts=FOUR_HOSTS) as job:
            before = job.wait_size(4)
            victim = _pids(before)[2]
            page = pages.Page(job, victim)
            pids = [victim, *(job.agent_and_guardian_of(victim) if number % 2 else ())]
            targets = [processes.Target(pid, job.pid) for pid in pids]
            wait_until(lambda: page.phase == pages.IN_COLLECTIVE, 20, "an allreduce", every=0.001)
            for target in targets:
                target.send(signal.SIGSTOP)
            _await_a_step_without(job, victim, before, within=5)
            for target in targets:
                try:
                    target.send(signal.SIGCONT)
                except ProcessLookupError:
                    pass
            job.wait_size(4, above=before.generation + 1, timeout=30)
            job.expect_exit(0, 60)
            context.check_oracle(job, arguments)
            for target in (page, *targets):
                target.close()


def Scenario72SurvivorsLeaveTheCollectiveOfABlackHoledRank(context):  # slow
    """The host's frames vanish, without FIN or RST. When they pass again, its process is back."""
    trouble = networks.why_not()
    if trouble is not None:
        print(f"  skipped: {trouble}")
        return
    arguments = ["--steps", 40, "--step-us", 3000, *BIG]
    with networks.Network(4) as network:
        logs = context.new_folder("oracle")
        hosts = [Host(f"n{i}", 1, network.address(i), network.prefix(i)) for i in range(4)]
        with StandingJob(context.build, hosts, np=4, min_np=2,
                         command=[context.program("oracle_worker"), "--log", logs, *arguments],
                         folder=context.new_folder("job"), listen=network.hub_address,
                         server_prefix=network.hub_prefix(),
                         env={"TMPDIR": str(context.tmp)}) as job:
            job.logs = logs
            before = job.wait_size(4)
            victim = _pids(before)[2]
            page = pages.Page(job, victim)
            wait_until(lambda: page.phase == pages.IN_COLLECTIVE, 20, "an allreduce", every=0.001)
            network.cut(2)
            shrunk = _await_a_step_without(job, victim, before, within=5)
            network.mend(2)
            after = job.wait_size(4, above=shrunk.generation, timeout=30)
            assert victim in _pids(after).values(), "the process comes back when its host does"
            job.expect_exit(0, 60)
            context.check_oracle(job, arguments)
            page.close()


# ---- 82 ------------------------------------------------------------------------------------------
def Scenario82ProgressOfDepartedRanksIsKept(context):  # slow
    """Two of four die right after a commit, and right before one; rank 0 is among them every other
    time. 1001 samples: with a last batch that is shorter than the others, and with batches that
    divide them, which is all that dropping the last one could change."""
    hit = collections.Counter()
    for number in range(max(4, context.runs)):
        before_commit, batch = number % 2 == 0, (48, 77)[number // 2 % 2]
        arguments = ["--steps", 400, "--step-us", 2000, "--samples", 1001, "--batch", batch,
                     "--state-bytes", 4 << 20]
        with context.oracle_job(arguments) as job:
            first = job.wait_status(lambda s: s.size == 4 and _newest(s) > 5, 20, "a few steps")
            pids = _pids(first)
            victims = [pages.Page(job, pids[r]) for r in ((0, 1), (2, 3), (0, 3))[number % 3]]
            pause_until(time.monotonic() + context.random.uniform(0, 0.2))
            if before_commit:
                wait_until(lambda: victims[0].phase == pages.COMMITTING, 5, "a commit", every=0)
            else:
                held = victims[0].held
                wait_until(lambda: victims[0].held != held, 5, "a commit's end", every=0)
            for page in victims:
                page.target.send()
            hit.update(["right before" if before_commit else "right after"])
            after = job.wait_size(4, above=first.generation)
            kept = set(pids.values()) - {page.pid for page in victims}
            assert kept <= set(_pids(after).values())
            job.expect_exit(0, 60)
            context.check_oracle(job, arguments)
            for page in victims:
                page.close()
    print(f"  killed two {dict(hit)}")


if __name__ == "__main__":
    runner.main(globals())
