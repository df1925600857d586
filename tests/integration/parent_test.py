"""What happens to the workers when an agent, a guardian or elastic-run is killed or signalled."""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import oracle
import processes
import runner
from waiting import wait_until

LONG = ["--steps", 8000, "--step-us", 3000]
# Long enough that the job trains on after a new agent has brought its workers.
MEDIUM = ["--steps", 700, "--step-us", 3000]


def _gone(pids):
    return not any(processes.alive(p) for p in pids)


def _descendants_with_grandchildren(job, agent):
    """All below the agent, once both of its workers' children in sessions of their own run."""
    def look():
        below = [p for p in job.below() if p != agent and agent in _ancestors(p)]
        there = [p for p in below if "elastic-test-grandchild" in processes.command_of(p)]
        return below if len(there) == 2 else None
    return wait_until(look, 10, lambda: "two grandchildren; there are " +
                      processes.describe([p for p in job.below() if p != agent]))


def _lose_parent(context, which):
    arguments = MEDIUM + ["--grandchild", 1]
    with context.oracle_job(arguments) as job:
        before = job.wait_size(4)
        target = before.members[2]
        agent, guardian = job.agent_and_guardian_of(target.pid)
        assert agent != guardian, "agent and guardian are two processes"
        lost = _descendants_with_grandchildren(job, agent)
        kept = {w.pid for w in before.members if w.host != target.host}
        victim = agent if which == "agent" else guardian
        start = time.monotonic()
        job.kill(victim)
        wait_until(lambda: _gone(lost + [agent]), 2.0,
                   lambda: "the end of " + processes.describe([p for p in lost + [agent]
                                                               if processes.alive(p)]))
        print(f"  all of {which}'s {len(lost)} processes were gone after "
              f"{1000 * (time.monotonic() - start):.0f} ms")
        after = job.wait_size(4, above=before.generation, timeout=30)
        assert kept <= {w.pid for w in after.members}, "the other host's workers did not stay"
        assert job.agent_and_guardian_of(next(w.pid for w in after.members
                                              if w.host == target.host))[0] != agent
        job.expect_exit(0, 60)
        context.check_oracle(job, arguments)


def _ancestors(pid):
    chain = []
    while pid > 1:
        stat = processes.stat_of(pid)
        if stat is None:
            break
        pid = stat[1]
        chain.append(pid)
    return chain


def WorkersOfAKilledAgentAreGoneWithinTwoSecondsAndANewAgentBringsOthers(context):
    _lose_parent(context, "agent")


def WorkersOfAKilledGuardianAreGoneWithinTwoSecondsAndANewAgentBringsOthers(context):
    _lose_parent(context, "guardian")


def NothingIsLeftOfAJobWhoseLauncherIsKilled(context):
    """Within the grace period plus 2 s, even of workers that ignore SIGTERM."""
    grace = 1.0
    for on_term in ("exit", "ignore"):
        arguments = LONG + ["--grandchild", 1, "--on-term", on_term]
        with context.oracle_job(arguments, launcher=["--grace-period", f"{grace}s"]) as job:
            job.wait_size(4)
            lost = job.below()
            assert len(lost) >= 2 * 2 + 4 + 4
            start = time.monotonic()
            job.process.kill()
            job.process.wait(5)
            wait_until(lambda: processes.reap_orphans({job.pid}) or _gone(lost), grace + 2.0,
                       lambda: "the end of " + processes.describe([p for p in lost
                                                                   if processes.alive(p)]))
            print(f"  {on_term}: gone after {time.monotonic() - start:.2f} s")
            terms = [log.terms for log in oracle.read_logs(job.logs)]
            assert all(terms), f"every worker gets SIGTERM first: {terms}"


def AStoppedWorkerIsLostAtTheFirstMissedBeatAndKilled(context):
    arguments = MEDIUM
    with context.oracle_job(arguments) as job:
        before = job.wait_size(4)
        victim = before.members[1]
        start = time.monotonic()
        job.kill(victim.pid, signal.SIGSTOP)
        wait_until(lambda: not processes.alive(victim.pid), 2.0, "the stopped worker's end")
        print(f"  killed {1000 * (time.monotonic() - start):.0f} ms after it was stopped")
        after = job.wait_size(4, above=before.generation)
        kept = {w.pid for w in before.members} - {victim.pid}
        assert kept <= {w.pid for w in after.members}
        job.expect_exit(0)
        context.check_oracle(job, arguments)


def AStoppedAgentIsASilentHostWhoseWorkersComeBackInTheSameProcesses(context):
    """The others train on. Its workers may live until the orphan limit (30 s); continued before,
    they are newcomers: same pid, new incarnation (P20)."""
    arguments = ["--steps", 1000, "--step-us", 3000]
    with context.oracle_job(arguments, launcher=["--heartbeat-timeout", "1s"]) as job:
        before = job.wait_size(4)
        target = before.members[3]
        agent, _ = job.agent_and_guardian_of(target.pid)
        start = time.monotonic()
        job.kill(agent, signal.SIGSTOP)
        shrunk = job.wait_status(lambda s: s.size == 2 and s.generation > before.generation, 5,
                                 "the other host trains on alone")
        print(f"  size 2 after {time.monotonic() - start:.2f} s")
        assert {w.pid for w in before.members if w.host != target.host} \
            == {w.pid for w in shrunk.members}
        job.kill(agent, signal.SIGCONT)
        after = job.wait_size(4, above=shrunk.generation, timeout=30)
        print(f"  size 4 again {time.monotonic() - start:.2f} s after the stop")
        assert {w.pid for w in after.members} == {w.pid for w in before.members}
        names = {w.pid: w.incarnation for w in before.members}
        renamed = {w.pid for w in after.members if w.incarnation != names[w.pid]}
        assert renamed == {w.pid for w in before.members if w.host == target.host}
        assert job.find("is back and offered again as a newcomer")
        job.expect_exit(0, 60)
        context.check_oracle(job, arguments)


def OneInterruptGivesTheWorkersTheGracePeriod(context):
    arguments = LONG + ["--on-term", "exit"]
    with context.oracle_job(arguments) as job:
        job.wait_size(4)
        workers = {w.pid for w in job.status().members}
        start = time.monotonic()
        job.signal(signal.SIGINT)
        job.expect_exit(130, 10)
        assert time.monotonic() - start < 5, "waits no longer than the workers need"
        logs = {log.pid: log for log in oracle.read_logs(job.logs)}
        terms = [logs[pid].terms[0] for pid in workers if logs[pid].terms]
        assert len(terms) == 4, "every worker gets SIGTERM"
        assert max(terms) - min(terms) < 1e9, f"together: {sorted(terms)}"
        assert set(logs) == workers, "nobody was replaced while the job stopped"


def AnInterruptedJobKillsWhatIgnoresSigterm(context):
    arguments = LONG + ["--on-term", "ignore"]
    with context.oracle_job(arguments, launcher=["--grace-period", "1s"]) as job:
        job.wait_size(4)
        start = time.monotonic()
        job.signal(signal.SIGINT)
        job.expect_exit(130, 10)
        assert 0.9 < time.monotonic() - start < 4, time.monotonic() - start
        line = job.find(r"job ended: .*last commit: step \d+ \(exit code 130\)")
        assert line is not None, job.output


def ASecondInterruptEndsTheJobAtOnce(context):
    arguments = LONG + ["--on-term", "ignore"]
    with context.oracle_job(arguments, launcher=["--grace-period", "60s"]) as job:
        job.wait_size(4)
        job.signal(signal.SIGINT)
        wait_until(lambda: all(log.terms for log in oracle.read_logs(job.logs)), 5,
                   "SIGTERM at the workers")
        start = time.monotonic()
        job.signal(signal.SIGINT)
        job.expect_exit(130, 5)
        print(f"  ended {time.monotonic() - start:.2f} s after the second interrupt")


def SigtermEndsTheJobWith143(context):
    with context.oracle_job(LONG) as job:
        job.wait_size(4)
        job.signal(signal.SIGTERM)
        job.expect_exit(143, 10)


def AStopFromTheTerminalDoesNotStopTheLauncher(context):
    """A stopped launcher would be a dead server: SIGTSTP is ignored while a job runs."""
    # In the test's session, as below a shell: elsewhere a stop has no effect on any program.
    sleeper = subprocess.Popen(["sleep", "1000"], process_group=0)
    try:
        sleeper.send_signal(signal.SIGTSTP)
        wait_until(lambda: processes.stat_of(sleeper.pid)[0] == "T", 5,
                   "the stop of a program that does not ignore it")
    finally:
        sleeper.kill()
        sleeper.wait()
    arguments = ["--steps", 300, "--step-us", 3000]
    with context.oracle_job(arguments, own_session=False) as job:
        job.wait_size(4)
        job.signal(signal.SIGTSTP)
        job.wait_line(r"SIGTSTP\) is ignored", 5)
        assert processes.stat_of(job.pid)[0] != "T"
        job.expect_exit(0)


if __name__ == "__main__":
    runner.main(globals())
