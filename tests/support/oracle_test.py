"""The checker itself: it must accept a right history and refuse each kind of wrong one."""

import copy
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
# pylint: disable=wrong-import-position
import oracle
import runner

IDS = {0: [4, 1, 7, 2], 1: [0, 3, 5, 6], 2: [9, 8]}


def _truth():
    return _final(oracle.Log(pid=1, steps=[(0, 0, 1, s, ids) for s, ids in IDS.items()]), [0, 0, 0])


def _final(log, generations):
    everything = [i + 1 for ids in IDS.values() for i in ids]
    log.final = (generations[-1], 0, 1, 3, sum(everything), sum(i * i for i in everything),
                 list(generations))
    return log


def _history():
    """Rank 1 dies in step 1; its proposal of generation 1 is abandoned, rank 0 takes it alone."""
    survivor = oracle.Log(pid=10, steps=[(1, 0, 2, 0, [4, 1]), (1, 0, 2, 1, [0, 3]),
                                         (2, 0, 1, 1, [0, 3, 5, 6]), (2, 0, 1, 2, [9, 8])])
    victim = oracle.Log(pid=11, steps=[(1, 1, 2, 0, [7, 2]), (1, 1, 2, 1, [5, 6])])
    return [_final(survivor, [1, 2, 2]), victim]


def _refused(logs, words):
    try:
        oracle.check(logs, _truth())
    except AssertionError as error:
        assert words in str(error), f"expected {words!r} in {error}"
        return
    raise AssertionError(f"a wrong history was accepted ({words})")


def ARightHistoryIsAccepted(_):
    oracle.check(_history(), _truth())


def ALostSampleIsRefused(_):
    logs = _history()
    logs[0].steps[2] = (2, 0, 1, 1, [0, 3, 5])
    _refused(logs, "lost [6]")


def ASampleThatCountsTwiceIsRefused(_):
    logs = _history()
    logs[1].steps[0] = (1, 1, 2, 0, [7, 4])
    _refused(logs, "twice")


def AForeignSampleIsRefused(_):
    logs = _history()
    logs[0].steps[3] = (2, 0, 1, 2, [9, 8, 99])
    _refused(logs, "not expected [99]")


def AMissingRankIsRefused(_):
    logs = _history()
    logs[1].steps.pop(0)
    _refused(logs, "ranks [0] of size")


def AWrongWeightIsRefused(_):
    logs = _history()
    final = list(logs[0].final)
    final[4] += 1
    logs[0].final = tuple(final)
    _refused(logs, "weight")


def WorkersThatDisagreeAreRefused(_):
    logs = _history()
    other = copy.deepcopy(logs[0])
    other.final = (*other.final[:4], other.final[4] + 1, *other.final[5:])
    _refused(logs + [other], "differ")


if __name__ == "__main__":
    runner.main(globals())
