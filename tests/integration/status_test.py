"""The status of a running job: elastic-ctl, and a client that knows nothing but the address."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import leftovers
import runner

ARGUMENTS = ["--steps", 8000, "--step-us", 2000]


def TheTableAndTheJsonShowRanksPidsStateAndResets(context):
    with context.oracle_job(ARGUMENTS, launcher=["--grace-period", "1s"]) as job:
        before = job.wait_size(4)
        job.kill(before.members[1].pid)
        after = job.wait_size(4, above=before.generation)
        assert len({w.pid for w in after.members}) == 4
        assert {(w.host, w.slot) for w in after.members} == {
            (h, s) for h in ("127.0.0.1", "127.0.0.2") for s in (0, 1)}
        (loss,) = [r for r in after.resets if "127.0.0.1" in r.get("cause", "")][:1]
        print(f"  reset: {loss}")
        assert "SIGKILL" in loss["cause"], loss
        assert after.state == "running", after.raw
        done = job.ctl("status", "--address", job.address)
        assert done.returncode == 0, done
        table = done.stdout
        assert re.match(r"job \S+: running\n", table), table
        assert re.search(rf"^generation {after.generation}\b.*, size 4 ", table, re.M), table
        rows = [line.split() for line in table.splitlines()]
        for w in after.members:
            expected = [str(w.rank), f"{w.host}:{w.slot}", str(w.pid)]
            assert [row for row in rows if row[:3] == expected], f"no row {expected} in\n{table}"
        assert re.search(rf"^{before.generation} -> \d+ .*SIGKILL", table, re.M), table


def AnAddressWhereNobodyListensIsNamed(context):
    done = subprocess.run([context.program("elastic-ctl"), "status", "--address", "127.0.0.1:1"],
                          capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode != 0
    assert "127.0.0.1:1" in done.stderr + done.stdout, done


def APublicClientReadsStatusAndHealthThroughReflection(context):
    client = os.path.join(os.path.dirname(__file__), "public_client.py")
    with context.oracle_job(ARGUMENTS, launcher=["--grace-period", "1s"]) as job:
        job.wait_size(4)
        done = subprocess.run(["/usr/bin/python3", client, job.address], capture_output=True,
                              text=True, timeout=60, check=False)
        assert done.returncode == 0, done
        print("  " + done.stdout.strip().replace("\n", "\n  ")[:600])


def AllListenersOfALocalJobAreOnItsOwnAddresses(context):
    with context.oracle_job(ARGUMENTS, launcher=["--grace-period", "1s"]) as job:
        job.wait_size(4)
        for pids in ([job.pid], [w.pid for w in job.status().members], job.below()):
            assert leftovers.listener_addresses(pids), f"nobody of {pids} listens"
        found = leftovers.listener_addresses([job.pid, *job.below()])
        assert found == {"127.0.0.1", "127.0.0.2"}, found


if __name__ == "__main__":
    runner.main(globals())
