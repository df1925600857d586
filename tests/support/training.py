"""Reads the report lines of worker_runtime/examples/fashion_mnist."""

import os
import pathlib
import re
import subprocess

# `step 100  epoch 0  generation 1  size 4  loss 0.6512  12345 samples/s`, in any layout of the
# kind: names followed by numbers.
STEP = re.compile(r"\bstep[ =:]+(\d+)")
LOSS = re.compile(r"\bloss[ =:]+([0-9.eE+-]+)")
ACCURACY = re.compile(r"\baccuracy[ =:]+([0-9.]+)( ?%)?")


def losses(lines):
    """{step: loss} of the report lines; the newest line of a step wins."""
    result = {}
    for line in lines:
        step, loss = STEP.search(line), LOSS.search(line)
        if step and loss:
            result[int(step.group(1))] = float(loss.group(1))
    return result


def accuracy(lines):
    """The last test accuracy, 0..1."""
    found = [m for m in map(ACCURACY.search, lines) if m]
    assert found, "no line with the accuracy in:\n" + "\n".join(lines)
    value = float(found[-1].group(1))
    return value / 100 if found[-1].group(2) or value > 1 else value


def alone(program, arguments):
    """Output lines of a run without a launcher."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ELASTIC_")}
    done = subprocess.run([program, *map(str, arguments)], env=environment, check=True, text=True,
                          timeout=300, capture_output=True)
    return (done.stdout + done.stderr).splitlines()


def records(folder):
    """{step: (loss, set of sample ids)} of what was committed, from fashion_mnist's --record files.

    A step may stand there for several generations; the highest one is the committed one, since a
    step that was committed is never done again (recorder.h).
    """
    ids_of, losses_of = {}, {}  # step -> generation -> one entry per rank
    for path in pathlib.Path(folder).iterdir():
        for line in path.read_text().splitlines():
            word, step, generation, *values = line.split()
            into = ids_of if word == "ids" else losses_of
            into.setdefault(int(step), {}).setdefault(int(generation), []).append(values)
    result = {}
    for step, generations in ids_of.items():
        committed = max(generations)
        ids = [int(i) for share in generations[committed] for i in share]
        assert len(ids) == len(set(ids)), f"step {step}: a sample counted twice"
        seen = {float(loss) for (loss,) in losses_of[step][committed]}
        assert len(seen) == 1, f"step {step}: ranks saw different losses {seen}"
        result[step] = (seen.pop(), set(ids))
    return result


def worst_difference(records_found, truth):
    """Largest relative difference of the losses; fails if a step's samples differ."""
    assert set(records_found) == set(truth), "other steps than in the undisturbed training"
    worst = 0.0
    for step, (loss, ids) in records_found.items():
        expected_loss, expected = truth[step]
        assert ids == expected, (f"step {step}: lost {sorted(expected - ids)[:9]}, not expected "
                                 f"{sorted(ids - expected)[:9]}")
        worst = max(worst, abs(loss - expected_loss) / expected_loss)
    return worst
