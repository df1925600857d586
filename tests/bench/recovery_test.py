"""The recovery benchmark measures what it says: every kill hits all ranks in a collective, and is
made good with the committed state on every survivor (recovery_worker.cc ends if it isn't). How fast
is what scripts/bench prints on a quiet machine; here are only the promised limits."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
sys.path.insert(0, os.path.dirname(__file__))
# pylint: disable=wrong-import-position
import network as networks
import runner
from recovery_job import ROWS, Bench, Case

# 30 kills in CI, together.
SOAK_RUNS = {
    "OneOfFourIsMadeGoodOnHostsThatShareNothingButTcp": 200,
    "OneOfEightIsMadeGood": 50,
    "OneOfFourIsMadeGoodWithStateInPlace": 50,
}
BIG = ("--reduce-bytes", 64 << 20, "--state-bytes", 64 << 20)
# A worker that dies with its host's agent alive is known to be lost long before any time-out: the
# shortest one on the way is the heartbeat time-out.
LIMIT_MS = 3000


def _check(context, case, network=None):
    bench = Bench(context.build, context.folder, case, context.random, network)
    samples = list(bench.kills(context.runs))
    assert len(samples) == context.runs
    assert set(bench.died_in) == {"in collective"}, f"victims died in {bench.died_in}"
    assert set(bench.ranks) == set(range(min(case.np, context.runs))), f"ranks {bench.ranks}"
    for sample in samples:
        assert set(ROWS) <= set(sample) and min(sample.values()) >= 0, sample
        assert sample["total"] < LIMIT_MS, f"a time-out was needed: {sample}"


def OneOfFourIsMadeGoodOnHostsThatShareNothingButTcp(context):  # slow
    trouble = networks.why_not()
    if trouble is not None:
        print(f"  hosts are loopback addresses: {trouble}")
        _check(context, Case("kill 1 of 4", (2, 2), worker=BIG))
        return
    with networks.Network(2) as network:
        _check(context, Case("kill 1 of 4", (2, 2), worker=BIG), network)


def OneOfEightIsMadeGood(context):  # slow
    _check(context, Case("kill 1 of 8", (4, 4), worker=BIG))


def OneOfFourIsMadeGoodWithStateInPlace(context):  # slow
    worker = (*BIG, "--state", "in-place")
    _check(context, Case("kill 1 of 4, state in place", (2, 2), worker=worker))


if __name__ == "__main__":
    runner.main(globals())
