"""A standing rendezvous server is ended, stopped and started again while a job trains."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import processes
import runner
from server import Server
from waiting import pause_until, wait_until

SOAK_RUNS = {"AServerThatIsKilledAndStartedAgainCostsNoWorkerAndNoSample": 50}
STEPS = ["--steps", 1000, "--step-us", 4000]
LONG = ["--steps", 2500, "--step-us", 4000]
ENDLESS = ["--steps", 100000, "--step-us", 2000]


def _job(context, server, arguments, launcher=(), **options):
    job = context.oracle_job(arguments, launcher=["--rendezvous", server.address, *launcher],
                             **options)
    job.spared = lambda: {server.pid}
    return job


def _pids(status):
    return {worker.rank: worker.pid for worker in status.members}


def _incarnations(status):
    return {worker.pid: worker.incarnation for worker in status.members}


def _workers_below(job):
    """Pids of worker processes, without asking a server."""
    return sorted(p for p in job.below() if "oracle_worker" in processes.command_of(p))


def _expect_only(context, server, within=2.0):
    """No process is left below the test but the server."""
    def left():
        processes.reap_orphans(known={server.pid})
        return [p for p in processes.descendants(os.getpid()) if p != server.pid]
    wait_until(lambda: not left(), within, lambda: processes.describe(left()))


def _ended_in_mid_training(context, server, job, before):
    server.end(context.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
    pause_until(time.monotonic() + context.random.choice([0.0, 0.1, 0.5, 1.0]))
    server.start()
    after = job.wait_size(4)
    assert _incarnations(after) == _incarnations(before), f"{after.raw}; before: {before.raw}"
    assert after.generation == before.generation, f"{after.raw}; before: {before.raw}"
    return None


def _ended_in_mid_reforming(context, server, job, before, delay_max=0.02):
    """A worker is killed, and the server when it is forming the next generation."""
    victim = before.members[context.random.randrange(4)].pid
    job.kill(victim)
    pause_until(time.monotonic() + context.random.uniform(0.0, delay_max))
    server.end()
    pause_until(time.monotonic() + context.random.choice([0.0, 0.3]))
    server.start()
    after = job.wait_status(
        lambda s: s.generation > before.generation and len(s.members) >= 3
        and s.state.lower() in ("running", "finishing"), 20, "a generation without the victim")
    kept = {pid: name for pid, name in _incarnations(before).items() if pid != victim}
    now = _incarnations(after)
    assert kept.items() <= now.items(), f"{now}; before: {kept}"
    assert not set(now.values()) - set(kept.values()) & set(_incarnations(before).values())
    return victim


def _ended_together_with_a_worker(context, server, job, before):
    return _ended_in_mid_reforming(context, server, job, before, delay_max=0.0)


def AServerThatIsKilledAndStartedAgainCostsNoWorkerAndNoSample(context):  # slow
    kinds = (_ended_in_mid_training, _ended_in_mid_reforming, _ended_together_with_a_worker)
    with Server(context) as server:
        for number in range(context.runs):
            with _job(context, server, STEPS) as job:
                before = job.wait_size(4)
                pause_until(time.monotonic() + context.random.uniform(0.0, 0.8))
                victim = kinds[number % 3](context, server, job, before)
                job.expect_exit(0, 60)
                logs = context.check_oracle(job, STEPS)
                survivors = set(_pids(before).values()) - {victim}
                finished = {log.pid for log in logs if log.final is not None}
                assert survivors <= finished, f"{survivors} were members, {finished} finished"
                started = len(logs)
                assert started <= 4 + (victim is not None), f"{started} workers: {job.output}"
            _expect_only(context, server)


def AStoppedServerThatGoesOnInTimeCostsNothing(context):  # slow
    with Server(context) as server:
        for stopped in (1.0, 6.0):  # less and more than connections outlive
            with _job(context, server, LONG, ["--orphan-limit", "30s"]) as job:
                before = job.wait_size(4)
                server.send(signal.SIGSTOP)
                pause_until(time.monotonic() + stopped)
                assert set(_workers_below(job)) == set(_pids(before).values())
                server.send(signal.SIGCONT)
                after = job.wait_size(4)
                assert _incarnations(after) == _incarnations(before), job.output
                job.expect_exit(0, 60)
                assert len(context.check_oracle(job, LONG)) == 4, job.output


def AServerStoppedForLongerThanTheOrphanLimitEndsTheJob(context):  # slow
    with Server(context) as server:
        with _job(context, server, ENDLESS, ["--orphan-limit", "2s", "--grace-period", "1s"],
                  ) as job:
            job.wait_size(4)
            server.send(signal.SIGSTOP)
            began = time.monotonic()
            # The limit counts from the last acknowledged beat; then the kill allowance (P23).
            wait_until(lambda: not _workers_below(job), 2.0 + 1.0 + 1.0, "the workers' end")
            assert time.monotonic() - began > 1.5, "the limit had not passed yet"
            job.expect_exit(5, 20)
            assert job.find("--orphan-limit"), job.output
        server.send(signal.SIGCONT)
        _wait_for_end(context, server)
        with _job(context, server, STEPS) as job:
            job.expect_exit(0, 60)


def _wait_for_end(context, server):
    """The server has noticed that its job's launcher is gone (5 s), and is free again."""
    def over():
        done = subprocess.run([context.program("elastic-ctl"), "status", "--address",
                               server.status_address, "--json"], capture_output=True, text=True,
                              timeout=20, check=False)
        return done.returncode == 0 and json.loads(done.stdout)["state"] in ("failed", "finished")
    wait_until(over, 30, lambda: f"the end of the job; the server's log:\n{server.log}", every=0.1)


def AKilledLauncherEndsItsJobAndFreesTheServer(context):  # slow
    with Server(context) as server:
        with _job(context, server, ENDLESS, ["--grace-period", "1s"]) as job:
            job.wait_size(4)
            job.signal(signal.SIGKILL)
            job.wait_exit(5)
            _expect_only(context, server, within=4.0)
        _wait_for_end(context, server)
        with _job(context, server, STEPS) as job:
            job.expect_exit(0, 60)
            context.check_oracle(job, STEPS)


def CtrlCEndsAJobWhoseServerIsAway(context):
    with Server(context) as server:
        with _job(context, server, ENDLESS, ["--grace-period", "2s"]) as job:
            job.wait_size(4)
            server.end()
            job.wait_line("is away")
            job.signal(signal.SIGINT)
            job.expect_exit(130, 10)
            _expect_only(context, server)


def _refused(context, arguments):
    done = subprocess.run([context.program("elastic-run"), *arguments, "-np", "1", "true"],
                          capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2, f"exit {done.returncode}: {done.stderr}"
    return done.stderr


def WhatCannotBeSubmittedIsRefusedWithItsReason(context):
    nobody = f"unix:{context.folder}/nobody"
    text = _refused(context, ["--rendezvous", nobody])
    assert "--rendezvous" in text and nobody in text, text
    with Server(context) as server:
        text = _refused(context, ["--rendezvous", server.status_address])
        assert "no standing rendezvous server" in text, text
        text = _refused(context, ["--rendezvous", server.address, "--status-address",
                                  "127.0.0.1:1"])
        assert "elastic-rendezvous" in text, text
        with _job(context, server, ENDLESS, ["--grace-period", "1s"]) as job:
            job.wait_size(4)
            text = _refused(context, ["--rendezvous", server.address])
            assert "one at a time" in text, text
            job.signal(signal.SIGTERM)
            job.expect_exit(143, 30)


def Scenario74AReplacedHostAndARestartedServerJudgeNobodyByTheOldTimes(context):  # slow
    limit = 1.0
    flags = ["--heartbeat-timeout", f"{limit}s", "--orphan-limit", "60s", "--grace-period", "1s"]
    with Server(context) as server:
        with _job(context, server, ENDLESS, flags, min_np=1) as job:
            before = job.wait_size(4)
            # A host falls silent, is lost, and comes back after twice the limit.
            agent, _ = job.agent_and_guardian_of(before.members[3].pid)
            job.kill(agent, signal.SIGSTOP)
            job.wait_size(2, above=before.generation)
            pause_until(time.monotonic() + 2 * limit)
            job.kill(agent, signal.SIGCONT)
            back = job.wait_size(4, above=before.generation + 1)
            _stays(job, back, 5.0)
            # The server is lost, and is back at once, or late.
            for away in (0.0, 10.0):
                server.end()
                pause_until(time.monotonic() + away)
                server.start()
                _stays(job, job.wait_size(4), 2 * limit)
            assert _incarnations(job.status()) == _incarnations(back), job.output
            job.signal(signal.SIGTERM)
            job.expect_exit(143, 30)


def _stays(job, status, seconds):
    """Nobody is lost, marked or replaced for so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        now = job.wait_size(4)
        assert (now.generation, _pids(now)) == (status.generation, _pids(status)), job.output


if __name__ == "__main__":
    runner.main(globals())
