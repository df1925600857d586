"""A real model: training that loses workers ends as the undisturbed training does."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import runner
import training
from job import HOSTS
from waiting import pause_until

SOAK_RUNS = {"TrainingThatLosesAWorkerEndsAsTheUndisturbedOne": 50}


def _train(context, arguments, min_np, disturb=None):
    """(records, accuracy) of a training by four workers; disturb(job) may kill some."""
    folder = context.new_folder("records")
    with context.job(["-np", "4", "--min-np", str(min_np), "-H", HOSTS],
                     [context.program("fashion_mnist"), "--record", str(folder / "r"),
                      *arguments]) as job:
        if disturb is not None:
            disturb(job)
        job.expect_exit(0, 200)
        return training.records(folder), training.accuracy([line.text for line in job.lines])


def AWorldOfOneTrainsWithoutALauncher(context):
    lines = training.alone(context.program("fashion_mnist"), ["--epochs", 1])
    assert training.accuracy(lines) > 0.75


def TrainingThatLosesAWorkerEndsAsTheUndisturbedOne(context):  # slow
    truth, accuracy = _train(context, [], 4)
    assert accuracy >= 0.85, accuracy
    for number in range(context.runs):
        def disturb(job, rank=number % 4):
            before = job.wait_size(4)
            pids = [w.pid for w in before.members]
            pause_until(time.monotonic() + context.random.uniform(0, 2.5))
            job.kill(pids[rank])
            after = job.wait_size(4, above=before.generation)
            assert set(pids) - {pids[rank]} <= {w.pid for w in after.members}

        found, ended_at = _train(context, ["--step-time", "3ms"], 2, disturb)
        worst = training.worst_difference(found, truth)
        assert worst < 1e-3, f"the loss differs by {worst}"
        assert abs(ended_at - accuracy) <= 0.005, f"accuracy {ended_at}, undisturbed {accuracy}"
        print(f"  run {number}: loss within {worst:.1e}, accuracy {ended_at}", flush=True)


if __name__ == "__main__":
    runner.main(globals())
