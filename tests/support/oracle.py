"""Replays what oracle workers logged (oracle_worker.cc) against the sampler's order.

The truth comes from a run of one worker without a launcher: ids_of_step[s] is the set of samples
that step s takes with that seed. A run of many workers, whatever was killed in it, must show:

- its final state has seen every sample of every step exactly once: weight and squares agree;
- at each committed step, the ids logged by the ranks of the generation that committed it (the state
  itself says which one) are disjoint and together the truth's set;
- all workers that ended say the same.
"""

import collections
import dataclasses
import os
import pathlib
import subprocess


@dataclasses.dataclass
class Log:
    """One worker process's log."""
    pid: int
    begins: list = dataclasses.field(default_factory=list)   # (generation, rank, size, step, ns)
    steps: list = dataclasses.field(default_factory=list)    # (generation, rank, size, step, ids)
    ends: list = dataclasses.field(default_factory=list)     # (generation, rank, size, step, ns)
    terms: list = dataclasses.field(default_factory=list)    # ns
    final: tuple = None  # (generation, rank, size, step, weight, squares, generation_of_step)


def _numbers(fields):
    return tuple(int(f) for f in fields)


def _list(text):
    return [] if text == "-" else [int(v) for v in text.split(",")]


def read_log(path):
    log = Log(pid=int(path.stem))
    for line in path.read_text().splitlines():
        word, *fields = line.split()
        if word in ("begin", "end"):
            (log.begins if word == "begin" else log.ends).append(_numbers(fields))
        elif word == "step":
            log.steps.append((*_numbers(fields[:4]), _list(fields[4])))
        elif word == "term":
            log.terms.append(int(fields[0]))
        elif word == "final":
            log.final = (*_numbers(fields[:6]), _list(fields[6]))
        else:
            raise AssertionError(f"{path}: unknown line {line!r}")
    return log


def read_logs(folder):
    return [read_log(p) for p in sorted(pathlib.Path(folder).glob("*.log"))]


def undisturbed(program, arguments, folder):
    """Runs the oracle alone, as fast as it can; returns its log."""
    os.makedirs(folder, exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ELASTIC_")}
    subprocess.run([program, "--log", folder, *arguments, "--step-us", "0"], check=True,
                   timeout=120, env=environment)
    (log,) = read_logs(folder)
    assert log.final is not None, "the undisturbed run did not end"
    return log


def check(logs, truth):
    """Raises AssertionError unless every committed sample counted exactly once."""
    finals = [log.final for log in logs if log.final is not None]
    assert finals, "no worker logged a final state"
    first = finals[0]
    for final in finals:
        assert final[3:] == first[3:], f"final states differ: {final[:6]} and {first[:6]}"
        assert final[0] == first[0], f"finished in two generations: {final[0]} and {first[0]}"
    _, _, _, steps, weight, squares, generation_of_step = first
    expected = truth.final
    assert steps == expected[3], f"{steps} steps, expected {expected[3]}"
    proposals = collections.defaultdict(list)  # (generation, step) -> [(rank, size, ids, pid)]
    for log in logs:
        for generation, rank, size, step, ids in log.steps:
            proposals[generation, step].append((rank, size, ids, log.pid))
    for _, _, _, step, ids in truth.steps:
        check_step(step, generation_of_step[step], set(ids),
                   proposals[generation_of_step[step], step])
    assert weight == expected[4], f"weight {weight}, expected {expected[4]}"
    assert squares == expected[5], f"squares {squares}, expected {expected[5]}"
    assert generation_of_step == sorted(generation_of_step), "generations of steps go back"


def check_step(step, generation, expected, shares):
    where = f"step {step} of generation {generation}"
    ranks = sorted(rank for rank, _, _, _ in shares)
    sizes = {size for _, size, _, _ in shares}
    assert len(sizes) == 1, f"{where}: sizes {sizes}"
    assert ranks == list(range(*sizes)), f"{where}: ranks {ranks} of size {sizes}"
    ids = [i for _, _, share, _ in shares for i in share]
    assert len(ids) == len(set(ids)), f"{where}: a sample counted twice"
    lost, extra = sorted(expected - set(ids)), sorted(set(ids) - expected)
    assert not lost and not extra, f"{where}: lost {lost[:9]}, not expected {extra[:9]}"
