"""How often a test repeats: a tenth in CI, whole in scripts/soak, or as the flag says."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
# pylint: disable=wrong-import-position
import runner

SOAK = {"Long": 50, "Odd": 21}


def ATestRunsATenthOfItsSoakRunsUnlessAskedForAll(_):
    def runs(name, soak=False, number=None):
        return runner.runs_of(name, SOAK, argparse.Namespace(soak=soak, runs=number))
    assert runs("Long") == 5 and runs("Odd") == 3, "a tenth, rounded up"
    assert runs("Long", soak=True) == 50
    assert runs("Other") == runner.RUNS, "named nowhere"
    assert runs("Long", soak=True, number=2) == 2 and runs("Other", number=7) == 7


if __name__ == "__main__":
    runner.main(globals())
