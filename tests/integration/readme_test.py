"""The programs in the README are what they say: short, compiled as they stand, and run."""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import runner

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
LINES_MAX = 40
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


def _program(header):
    """The indented block of the README that begins by including `header`."""
    lines = README.read_text().splitlines()
    begin = lines.index(f"    #include <elastic/{header}>")
    end = begin
    while end < len(lines) and (lines[end].startswith("    ") or not lines[end]):
        end += 1
    return "\n".join(line[4:] for line in lines[begin:end]).rstrip() + "\n"


def _build(context, header, name, compiler):
    text = _program(header)
    assert text.count("\n") <= LINES_MAX, f"{name} has {text.count(chr(10))} lines"
    folder = context.new_folder("readme")
    (folder / name).write_text(text)
    library = context.build / "worker_runtime"
    subprocess.run([*compiler, *STRICT, f"-I{context.build}/include", folder / name, "-o",
                    folder / "train", f"-L{library}", "-lelastic", f"-Wl,-rpath,{library}"],
                   check=True)
    return folder / "train"


def _trains(context, program):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ELASTIC_")}
    alone = subprocess.run([program], check=True, text=True, capture_output=True, timeout=60,
                           env=environment)
    assert re.fullmatch(r"weight 3\.000\n", alone.stdout), alone
    with context.job(["-np", "4", "--min-np", "2", "-H", "127.0.0.1:2,127.0.0.2:2"],
                     [program]) as job:
        job.expect_exit(0, 60)
        assert job.find(r"weight 3\.000$"), job.output


def TheFunctionInCxx17IsCompiledAndTrains(context):
    _trains(context, _build(context, "elastic.h", "train.cc", ["g++", "-std=c++17"]))


def TheLoopInC99IsCompiledAndTrains(context):
    _trains(context, _build(context, "elastic_c.h", "train.c", ["gcc", "-std=c99"]))


if __name__ == "__main__":
    runner.main(globals())
