"""Workers are killed at random and at chosen moments; no committed sample is lost or repeated."""

import collections
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import page as pages
import processes
import runner
from waiting import pause_until, wait_until

SOAK_RUNS = {
    "AnyWorkerKilledAtAnyMomentLosesNoSampleAndIsReplaced": 50,
    "AnyWorkerKilledAtAnyMomentLosesNoSampleOfAStateInPlace": 50,
    "AKillDuringReFormingStartsTheNextGeneration": 50,
}
STEPS = ["--steps", 400, "--step-us", 3000]
# A state whose copying takes long enough to be hit.
BIG = ["--state-bytes", 48 << 20]
# What each run aims at; None: any moment. Aiming is needed for phases of a millisecond.
TARGETS = [None, pages.RESTORING, pages.COMMITTING, pages.ENTERING, pages.IN_COLLECTIVE, None,
           pages.OUTSIDE]
# Between the look and the kill a phase may pass, on a busy machine more than now and then.
AIMS_MAX = 5


def _pids(status):
    return {w.rank: w.pid for w in status.members}


def _kill_in_phase(watched, phase, timeout):
    """Kills the first of `watched` pages' workers that shows `phase`; its page, or None."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        for page in watched:
            if page.phase == phase:
                page.target.send()
                return page
    return None


def _workers_below(job):
    """Pids of worker processes, newcomers included, without asking the server."""
    return [p for p in job.below() if "oracle_worker" in processes.command_of(p)]


def _page_when_there(job, pid):
    def look():
        try:
            return pages.Page(job, pid)
        except (LookupError, ProcessLookupError, AssertionError):
            return None
    return wait_until(look, 10, f"a control page of {pid}")


def _newcomer_page(job, known):
    pid = wait_until(lambda: [p for p in _workers_below(job) if p not in known], 10,
                     "a replacement process")[0]
    return _page_when_there(job, pid)


def _one_kill(context, target, state):
    """One run with one kill (more where the phase needs a re-forming).

    Returns the victims' phases at death, and whether one of them died in the phase aimed at.
    """
    big = target in (pages.COMMITTING, pages.RESTORING)
    # A newcomer waits so long that its page is found before it restores, on a busy machine too.
    steps, newcomer_us = {pages.RESTORING: (300, 1000000),
                          pages.COMMITTING: (150, 200000)}.get(target, (500, 200000))
    arguments = ["--steps", steps, "--step-us", 3000, "--newcomer-us", newcomer_us,
                 *(BIG if big else ["--reduce-bytes", 1 << 20]), "--state", state]
    hit = []
    with context.oracle_job(arguments) as job:
        before = job.wait_size(4)
        (job.logs / "began").touch()
        pids = _pids(before)
        watched = {rank: pages.Page(job, pid) for rank, pid in pids.items()}
        victim = watched[context.random.randrange(4)]
        if target == pages.ENTERING:
            # Entering takes a millisecond or two. It takes until the first missed beat of a member
            # that is stopped, since that one can't answer its new edges.
            stopped, entering = [p for p in watched.values() if p is not victim][:2]
            stopped.target.send(signal.SIGSTOP)
            victim.target.send()
            hit += [victim, stopped]
            aimed = _kill_in_phase([entering], target, 2)
        elif target == pages.RESTORING:
            # Before the first commit there is nothing to restore.
            job.wait_status(lambda s: s.raw.get("newest"), 10, "a committed state")
            victim.target.send()
            hit.append(victim)
            aimed = _kill_in_phase([_newcomer_page(job, pids.values())], target, 5)
        else:
            pause_until(time.monotonic() + context.random.uniform(0, 0.5))
            aimed = _kill_in_phase([victim], target, 1) if target is not None else None
            if aimed is None:
                victim.target.send()
                hit.append(victim)
        hit += [aimed] if aimed is not None else []
        wait_until(lambda: not any(processes.alive(p.pid) for p in hit), 5, "the victims' end")
        after = job.wait_size(4, above=before.generation)
        kept = set(pids.values()) - {page.pid for page in hit}
        assert kept <= set(_pids(after).values()), f"{kept} did not stay in {_pids(after)}"
        job.expect_exit(0, 60)
        context.check_oracle(job, arguments)
    names = [page.phase_name for page in hit]
    met = target is None or (aimed is not None and aimed.phase == target)
    print(f"  victims were {', '.join(names)}"
          + ("" if met else f"; missed {pages.PHASE_NAMES[target]}"), flush=True)
    for page in {*watched.values(), *hit}:
        page.close()
    return names, met


def _kills_in_all_phases(context, state):
    hit = collections.Counter()
    for number in range(context.runs):
        target = TARGETS[number % len(TARGETS)]
        for _ in range(AIMS_MAX):
            names, met = _one_kill(context, target, state)
            hit.update(names)
            if met:
                break
        assert met, f"aimed at {pages.PHASE_NAMES[target]} {AIMS_MAX} times in vain"
    print(f"  phases: {dict(hit)}")
    if context.runs >= 50:
        for phase in (pages.OUTSIDE, pages.IN_COLLECTIVE, pages.COMMITTING, pages.ENTERING,
                      pages.RESTORING):
            name = pages.PHASE_NAMES[phase]
            assert hit[name] >= 3, f"phase {name} was hit {hit[name]} times, expected at least 3"


def AnyWorkerKilledAtAnyMomentLosesNoSampleAndIsReplaced(context):  # slow
    _kills_in_all_phases(context, "two-buffer")


def AnyWorkerKilledAtAnyMomentLosesNoSampleOfAStateInPlace(context):  # slow
    _kills_in_all_phases(context, "in-place")


def OneKilledWorkerIsReplacedWhileTheOthersKeepTheirProcesses(context):
    arguments = STEPS
    with context.oracle_job(arguments) as job:
        before = job.wait_size(4)
        victim = _pids(before)[0]
        job.kill(victim)
        after = job.wait_size(4, above=before.generation)
        assert set(_pids(before).values()) - {victim} <= set(_pids(after).values())
        assert victim not in _pids(after).values()
        # Survivors keep their order and come first; the newcomer gets the last rank.
        assert [_pids(after)[r] for r in range(3)] == [_pids(before)[r] for r in (1, 2, 3)]
        job.expect_exit(0)
        context.check_oracle(job, arguments)


def TwoWorkersKilledAtOnceAreBothReplaced(context):
    arguments = STEPS
    for ranks in ((0, 1), (1, 2), (0, 3))[:max(1, min(context.runs, 3))]:
        with context.oracle_job(arguments) as job:
            before = job.wait_size(4)
            victims = [_pids(before)[r] for r in ranks]
            for pid in victims:
                job.kill(pid)
            after = job.wait_size(4, above=before.generation)
            assert set(_pids(before).values()) - set(victims) <= set(_pids(after).values())
            job.expect_exit(0)
            context.check_oracle(job, arguments)


def AKillDuringReFormingStartsTheNextGeneration(context):  # slow
    count = max(2, context.runs)
    for number in range(count):
        gap = 0.5 * number / (count - 1)
        arguments = ["--steps", 500, "--step-us", 3000]
        with context.oracle_job(arguments) as job:
            before = job.wait_size(4)
            pids = _pids(before)
            first, second = context.random.sample(range(4), 2)
            start = time.monotonic()
            job.kill(pids[first])
            pause_until(start + gap)
            job.kill(pids[second])
            after = job.wait_size(4, above=before.generation)
            kept = {pids[r] for r in range(4) if r not in (first, second)}
            assert kept <= set(_pids(after).values()), f"gap {gap}: {kept} not in {_pids(after)}"
            job.expect_exit(0)
            context.check_oracle(job, arguments)


def AllWorkersOfOneHostAreReplaced(context):
    arguments = STEPS
    for host in ("127.0.0.1", "127.0.0.2"):
        with context.oracle_job(arguments) as job:
            before = job.wait_size(4)
            victims = [w.pid for w in before.members if w.host == host]
            assert len(victims) == 2
            for pid in victims:
                job.kill(pid)
            after = job.wait_size(4, above=before.generation)
            assert set(_pids(before).values()) - set(victims) <= set(_pids(after).values())
            job.expect_exit(0)
            context.check_oracle(job, arguments)


def ANewcomerKilledWhileItStartsDisturbsNobody(context):
    """It is killed before it has declared readiness: no generation changes on its account."""
    arguments = ["--steps", 900, "--step-us", 3000, "--newcomer-us", 400000]
    with context.oracle_job(arguments) as job:
        before = job.wait_size(4)
        (job.logs / "began").touch()
        pids = set(_pids(before).values())
        victim = _pids(before)[3]
        job.kill(victim)
        shrunk = job.wait_size(3, above=before.generation)
        newcomer = wait_until(lambda: [p for p in _workers_below(job) if p not in pids], 10,
                              "a replacement process")[0]
        job.kill(newcomer)
        wait_until(lambda: not processes.alive(newcomer), 5, "the newcomer's end")
        assert job.wait_size(3).generation == shrunk.generation, "a starting newcomer was a member"
        after = job.wait_size(4, above=shrunk.generation)
        assert pids - {victim} <= set(_pids(after).values())
        job.expect_exit(0)
        context.check_oracle(job, arguments)


if __name__ == "__main__":
    runner.main(globals())
