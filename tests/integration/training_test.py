"""A real model: training that loses workers ends as the undisturbed training does."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import runner
import training
from waiting import pause_until


def _compare(lines, truth_lines):
    losses, truth = training.losses(lines), training.losses(truth_lines)
    common = sorted(set(losses) & set(truth))
    assert len(common) >= 5, f"too few report lines in common: {common}"
    worst = max(common, key=lambda s: abs(losses[s] - truth[s]) / truth[s])
    difference = abs(losses[worst] - truth[worst]) / truth[worst]
    # Lines are rounded, so the comparison can't be finer than their last digit.
    assert difference < 1e-3, f"step {worst}: loss {losses[worst]}, undisturbed {truth[worst]}"
    found, expected = training.accuracy(lines), training.accuracy(truth_lines)
    assert abs(found - expected) <= 0.005, f"accuracy {found}, undisturbed {expected}"
    return difference, found


def AWorldOfOneTrainsWithoutALauncher(context):
    lines = training.alone(context.program("fashion_mnist"), ["--epochs", 1])
    assert training.accuracy(lines) > 0.75


def TrainingThatLosesAWorkerEndsAsTheUndisturbedOne(context):  # slow
    program = context.program("fashion_mnist")
    with context.job(["-np", "4", "-H", runner.HOSTS], [program]) as job:
        job.expect_exit(0, 120)
        truth = [line.text for line in job.lines]
    assert training.accuracy(truth) >= 0.85
    for number in range(context.runs):
        with context.job(["-np", "4", "--min-np", "2", "-H", runner.HOSTS],
                         [program, "--step-time", "3ms"]) as job:
            before = job.wait_size(4)
            pids = [w.pid for w in before.members]
            victim = pids[number % 4]
            pause_until(time.monotonic() + context.random.uniform(0, 2.0))
            job.kill(victim)
            after = job.wait_size(4, above=before.generation)
            assert set(pids) - {victim} <= {w.pid for w in after.members}
            job.expect_exit(0, 120)
            difference, accuracy = _compare([line.text for line in job.lines], truth)
            print(f"  run {number}: loss within {difference:.1e}, accuracy {accuracy}", flush=True)


if __name__ == "__main__":
    runner.main(globals())
