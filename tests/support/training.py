"""Reads the report lines of worker_runtime/examples/fashion_mnist."""

import re
import subprocess
import os

# `step 100  epoch 0  generation 1  size 4  loss 0.6512  12345 samples/s`, in any layout of the
# kind: names followed by numbers.
STEP = re.compile(r"\bstep[ =:]+(\d+)")
LOSS = re.compile(r"\bloss[ =:]+([0-9.eE+-]+)")
SIZE = re.compile(r"\bsize[ =:]+(\d+)")
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
