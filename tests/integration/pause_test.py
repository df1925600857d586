"""Agents, guardians, workers and the server are stopped (SIGSTOP), for less and for more than each
limit, and continued. A pause below a limit costs no process and no generation; above it nothing of
an older incarnation lives on (P20-P23), and a writer that was stopped does no harm (P16).

Limits: a host is silent after the heartbeat time-out, a guardian after 1 s, a worker at the first
missed beat of 100 ms; workers live on without a server until the orphan limit, and after it their
guardian has 1 s (the kill allowance).
"""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import oracle
import page as pages
import processes
import runner
from standing import Host, StandingJob
from waiting import pause_until, wait_until

SOAK_RUNS = {"AStoppedWriterNeverReachesItsSuccessorsMemory": 30}
STEPS = ["--steps", 1500, "--step-us", 3000]
LONG = ["--steps", 8000, "--step-us", 3000]
GUARDIAN_LIMIT = 1.0
KILL_ALLOWANCE = 1.0


def _processes(status):
    """Who is a member, as which process and under which name."""
    return {(w.host, w.slot): (w.pid, w.incarnation) for w in status.members}


def _steps_logged(job):
    return sum(len(log.steps) for log in oracle.read_logs(job.logs))


def _gone(pids):
    return not any(processes.alive(p) for p in pids)


def _pause(job, pids, seconds, during=None):
    """Stops them together, continues them after `seconds`; `during` is called shortly before."""
    job.kill_all(pids, signal.SIGSTOP)
    pause_until(time.monotonic() + seconds)
    if during is not None:
        during()
    job.kill_all(pids, signal.SIGCONT)


def _expect_undisturbed(context, job, arguments, before, seconds=1.0):
    """Trains on for a while, with the same processes under the same names, to the exact end."""
    pause_until(time.monotonic() + seconds)
    after = job.wait_size(4)
    assert after.generation == before.generation, f"{job.tail()}"
    assert _processes(after) == _processes(before)
    job.expect_exit(0, 60)
    context.check_oracle(job, arguments)


def AnAgentStoppedForLessThanTheHeartbeatTimeoutCostsNothing(context):
    with context.oracle_job(STEPS, launcher=["--heartbeat-timeout", "2s"]) as job:
        before = job.wait_size(4)
        agent, _ = job.agent_and_guardian_of(before.members[3].pid)
        for _ in range(2):
            _pause(job, [agent], 1.0)
            pause_until(time.monotonic() + 0.3)  # for a heartbeat in between
        _expect_undisturbed(context, job, STEPS, before)


def AllAgentsSilentAtOnceRaiseNoMarksAndTheGenerationGoesOn(context):
    """With fewer than min-np members on counted hosts the trouble is the server's own (P20)."""
    with context.oracle_job(STEPS, launcher=["--heartbeat-timeout", "1s"]) as job:
        before = job.wait_size(4)
        logged = []
        _pause(job, job.agents(), 2.5, lambda: logged.append(_steps_logged(job)))
        assert logged[0] > 300, f"the workers went on meanwhile: {logged[0]} steps"
        _expect_undisturbed(context, job, STEPS, before)


def AGuardianStoppedForLessThanItsLimitCostsNothing(context):
    with context.oracle_job(STEPS) as job:
        before = job.wait_size(4)
        _, guardian = job.agent_and_guardian_of(before.members[3].pid)
        for _ in range(3):
            _pause(job, [guardian], 0.6 * GUARDIAN_LIMIT)
            pause_until(time.monotonic() + 0.3)
        _expect_undisturbed(context, job, STEPS, before)


def AnAgentWhoseGuardianIsSilentForOneSecondKillsItsWorkersAndEnds(context):
    """Also while the guardian stays stopped; a new agent brings new workers (P23)."""
    with context.oracle_job(STEPS) as job:
        before = job.wait_size(4)
        target = before.members[3]
        agent, guardian = job.agent_and_guardian_of(target.pid)
        lost = [w.pid for w in before.members if w.host == target.host]
        kept = [w.pid for w in before.members if w.host != target.host]
        start = time.monotonic()
        job.kill(guardian, signal.SIGSTOP)
        wait_until(lambda: _gone([*lost, agent, guardian]), GUARDIAN_LIMIT + 2,
                   lambda: "the end of " + processes.describe([*lost, agent, guardian]))
        took = time.monotonic() - start
        assert took > 0.8 * GUARDIAN_LIMIT, f"killed after {took:.2f} s already"
        after = job.wait_size(4, above=before.generation, timeout=30)
        assert set(kept) <= {w.pid for w in after.members}
        job.expect_exit(0, 60)
        context.check_oracle(job, STEPS)


def AGuardianAndItsAgentStoppedTogetherCostNothingWhenContinuedInTime(context):
    """As when the whole host is suspended: the agent counts its own looks at the guardian."""
    with context.oracle_job(STEPS, launcher=["--heartbeat-timeout", "4s"]) as job:
        before = job.wait_size(4)
        pair = job.agent_and_guardian_of(before.members[3].pid)
        _pause(job, pair, 2 * GUARDIAN_LIMIT)
        _expect_undisturbed(context, job, STEPS, before)


def AServerStoppedForLessOrMoreThanTheHeartbeatTimeoutCostsNothing(context):
    """The workers train on without it; what it reads late on waking is no silence of theirs."""
    for seconds in (0.5, 3.0):
        with context.oracle_job(STEPS, launcher=["--heartbeat-timeout", "1s"]) as job:
            before = job.wait_size(4)
            logged = [_steps_logged(job)]
            _pause(job, [job.pid], seconds, lambda: logged.append(_steps_logged(job)))
            assert logged[1] - logged[0] > 100 * seconds, f"training went on: {logged}"
            _expect_undisturbed(context, job, STEPS, before)


def AWorkerKilledWhileTheServerIsStoppedIsMadeGoodAfterwards(context):
    with context.oracle_job(STEPS, launcher=["--heartbeat-timeout", "1s"]) as job:
        before = job.wait_size(4)
        victim = before.members[1].pid
        _pause(job, [job.pid], 2.0,
               lambda: job.kill(victim))
        after = job.wait_size(4, above=before.generation)
        assert {w.pid for w in before.members} - {victim} <= {w.pid for w in after.members}
        job.expect_exit(0, 60)
        context.check_oracle(job, STEPS)


# ---- the orphan limit ----------------------------------------------------------------------------
ORPHAN_LIMIT = 2.0


def _standing(context, arguments):
    folder = context.new_folder("standing")
    logs = context.new_folder("oracle")
    job = StandingJob(context.build, [Host("a", 2), Host("b", 2)], np=4, min_np=2,
                      command=[context.program("oracle_worker"), "--log", logs, *arguments],
                      folder=folder, orphan_limit=ORPHAN_LIMIT,
                      flags=["--heartbeat-timeout", "1s"], env={"TMPDIR": str(context.tmp)})
    job.logs = logs
    return job


def _await_the_deadline(pids, start):
    """Returns when all of them are gone, which is from the orphan limit on and not much later."""
    wait_until(lambda: _gone(pids), ORPHAN_LIMIT + KILL_ALLOWANCE + 1,
               lambda: "the end of " + processes.describe(pids))
    took = time.monotonic() - start
    print(f"  gone {took:.2f} s after the stop")
    # The deadline counts from the newest acknowledged heartbeat, a quarter of a second old at most
    # on a machine that keeps up.
    assert took > ORPHAN_LIMIT - 1, f"killed after {took:.2f} s already"
    assert took < ORPHAN_LIMIT + KILL_ALLOWANCE, f"{took:.2f} s: later than the server assumes"


def TheGuardianOfAStoppedAgentKillsTheWorkersAtTheDeadline(context):
    """On waking the agent looks at its deadlines first: it offers nobody, and ends (P23)."""
    with _standing(context, STEPS) as job:
        before = job.wait_size(4)
        target = before.members[3]
        agent, _ = job.agent_and_guardian_of(target.pid)
        lost = [w.pid for w in before.members if w.host == target.host]
        start = time.monotonic()
        job.kill(agent, signal.SIGSTOP)
        _await_the_deadline(lost, start)
        shrunk = job.wait_size(2, above=before.generation)
        job.kill(agent, signal.SIGCONT)
        wait_until(lambda: not processes.alive(agent), 3, "the end of the agent that was stopped")
        assert job.wait_size(2).generation == shrunk.generation, "it came back after its deadline"
        job.expect_exit(0, 60)
        context.check_oracle(job, STEPS)


def WorkersEndThemselvesAtTheDeadlineWhenTheirGuardianIsStoppedToo(context):
    with _standing(context, STEPS) as job:
        before = job.wait_size(4)
        target = before.members[3]
        pair = job.agent_and_guardian_of(target.pid)
        lost = [w.pid for w in before.members if w.host == target.host]
        start = time.monotonic()
        job.kill_all(pair, signal.SIGSTOP)
        _await_the_deadline(lost, start)
        job.kill_all(pair, signal.SIGCONT)
        wait_until(lambda: _gone(pair), 3, "the end of agent and guardian")
        job.expect_exit(0, 60)
        context.check_oracle(job, STEPS)


def AServerStoppedForLongerThanTheOrphanLimitFindsNobodyAlive(context):
    """P20: 0 ghosts. Nobody is left who could go on, so the job ends when it is continued."""
    with _standing(context, LONG) as job:
        before = job.wait_size(4)
        workers = [w.pid for w in before.members]
        start = time.monotonic()
        os.kill(job.process.pid, signal.SIGSTOP)
        _await_the_deadline(workers, start)
        wait_until(lambda: _gone(job.agents()), 3, "the agents' end")
        os.kill(job.process.pid, signal.SIGCONT)
        job.wait_status(lambda s: s.waits_for or s.state.lower() != "running", 5,
                        "the server sees that nobody is left")


def AServerStoppedForLessThanTheOrphanLimitCostsNothing(context):
    with _standing(context, STEPS) as job:
        before = job.wait_size(4)
        os.kill(job.process.pid, signal.SIGSTOP)
        pause_until(time.monotonic() + ORPHAN_LIMIT - 1)
        os.kill(job.process.pid, signal.SIGCONT)
        _expect_undisturbed(context, job, STEPS, before)


# ---- a stopped writer ----------------------------------------------------------------------------
FOUR_HOSTS = ",".join(f"127.0.0.{i}:1" for i in range(1, 5))


def _stopped_in_an_allreduce(context, job, victim):
    """The page of the victim, which was stopped together with its whole host."""
    page = pages.Page(job, victim.pid)
    host = [processes.Target(pid, job.pid) for pid in job.agent_and_guardian_of(victim.pid)]
    pause_until(time.monotonic() + context.random.uniform(0.1, 0.4))
    wait_until(lambda: page.phase == pages.IN_COLLECTIVE, 10, "an allreduce", every=0.001)
    for target in (*host, page.target):
        target.send(signal.SIGSTOP)
    return page, host


def AStoppedWriterNeverReachesItsSuccessorsMemory(context):  # slow
    """P16. A host is stopped as a whole with its worker in mid-allreduce; the others form a new
    generation without it; then the worker runs on, unfenced, with nobody there to kill it, as a
    member of a generation that is over. Were it to send anything that a successor takes, to write
    anything of theirs or to commit, then sums, state or samples would be wrong: the oracle looks at
    each. Only then its agent is continued, which offers the process again (P20)."""
    arguments = ["--steps", 250, "--step-us", 3000, "--reduce-bytes", 8 << 20,
                 "--state-bytes", 4 << 20]
    for _ in range(context.runs):
        with context.oracle_job(arguments, hosts=FOUR_HOSTS,
                                launcher=["--heartbeat-timeout", "600ms"]) as job:
            before = job.wait_size(4)
            victim = before.members[context.random.randrange(4)]
            page, host = _stopped_in_an_allreduce(context, job, victim)
            job.wait_size(3, above=before.generation, timeout=10)
            held, beats = page.held, page.beats
            page.target.send(signal.SIGCONT)
            wait_until(lambda: page.beats > beats + 2, 5, "the worker runs on", every=0.001)
            assert not page.fenced, "nobody has told it yet"
            # One commit may be whose collectives were complete when it was stopped (P5); for the
            # next one it would need the others.
            assert page.held[0] == held[0] and page.held[1] <= held[1] + 1, \
                f"it committed: {held} before, {page.held} now"
            for target in host:
                target.send(signal.SIGCONT)
            after = job.wait_size(4, above=before.generation + 1, timeout=30)
            assert {w.pid for w in after.members} == {w.pid for w in before.members}
            job.expect_exit(0, 60)
            context.check_oracle(job, arguments)
            for target in (*host, page):
                target.close()


def AStoppedWorkerThatCannotBeKilledHoldsUpTheNextGenerationUntilItsHostIsLost(context):
    """P13, P18: while its host is counted the others wait for its death, and its guardian is
    stopped. The agent sees that and kills for it; nobody joins a generation beside a living writer.
    """
    arguments = ["--steps", 250, "--step-us", 3000, "--reduce-bytes", 8 << 20]
    with context.oracle_job(arguments) as job:
        before = job.wait_size(4)
        victim = before.members[context.random.randrange(4)]
        page = pages.Page(job, victim.pid)
        _, guardian = job.agent_and_guardian_of(victim.pid)
        wait_until(lambda: page.phase == pages.IN_COLLECTIVE, 10, "an allreduce", every=0.001)
        job.kill_all([guardian, victim.pid], signal.SIGSTOP)
        start = time.monotonic()
        after = job.wait_status(lambda s: s.generation > before.generation, 4, "a new generation")
        assert not processes.alive(victim.pid), "it may still write"
        print(f"  a new generation after {time.monotonic() - start:.2f} s")
        kept = {w.pid for w in before.members if w.host != victim.host}
        assert kept <= {w.pid for w in after.members}
        job.wait_size(4, above=before.generation, timeout=30)
        job.expect_exit(0, 60)
        context.check_oracle(job, arguments)
        page.close()


if __name__ == "__main__":
    runner.main(globals())
