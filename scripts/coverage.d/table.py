"""scripts/coverage: adds up what gcov says of every object file; prints lines and branches run.

A header is counted once, with what any file that includes it has run. Tests, generated code and
what lies outside the project are left out.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = ("_test.cc", "_fixture.h", "/testing/", "/examples/", "test_agent.h",
            "agent_test_support.h", "agent_test_worker.cc", "little_agent.", "_bench.cc")


def ours(name):
    """The file's path within the project, or None."""
    path = pathlib.Path(os.path.normpath(name))
    try:
        relative = path.relative_to(ROOT)
    except ValueError:
        return None
    text = str(relative)
    if relative.parts[0] in ("build", "tests") or any(part in text for part in LEFT_OUT):
        return None
    return text


def read(data):
    """What gcov says of one .gcda or .gcno, as JSON objects of files."""
    command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=data.parent, check=False)
    found = []
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            document = json.loads(line)
            folder = document["current_working_directory"]
            found += [(ours(os.path.join(folder, file["file"])), file)
                      for file in document["files"]]
    return [(name, file) for name, file in found if name]


class File:
    """Counts of one source file over all objects that contain it."""

    def __init__(self):
        self.lines = collections.Counter()
        self.branches = collections.Counter()

    def add(self, file):
        for line in file["lines"]:
            self.lines[line["line_number"]] += line["count"]
            for index, branch in enumerate(line["branches"]):
                if not branch["throw"]:
                    self.branches[line["line_number"], index] += branch["count"]


def share(counter):
    return sum(1 for count in counter.values() if count), len(counter)


def percent(run, of):
    return f"{100 * run / of:6.1f} %" if of else "     - "


def print_table(title, rows):
    width = max(len(title), *(len(name) for name in rows))
    print(f"{title:{width}}     lines      run   branches      run")
    everything = [file for files in rows.values() for file in files]
    for name, files in [*sorted(rows.items()), ("all", everything)]:
        lines = [sum(x) for x in zip(*(share(f.lines) for f in files))]
        branches = [sum(x) for x in zip(*(share(f.branches) for f in files))]
        print(f"{name:{width}} {lines[1]:9} {percent(*lines)} "
              f"{branches[1]:10} {percent(*branches)}")


def never_run(file):
    """Line numbers that never ran, as 3-5,9."""
    parts = []
    for line in sorted(n for n, count in file.lines.items() if not count):
        if parts and parts[-1][1] == line - 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in parts)


def main(build, below=None):
    # A file that no test touches has a .gcno only: it counts, as never run.
    data = [p for p in sorted(pathlib.Path(build).resolve().rglob("*.gcno"))
            if "CMakeFiles" in str(p)]
    data = [p.with_suffix(".gcda") if p.with_suffix(".gcda").exists() else p for p in data]
    files = collections.defaultdict(File)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(read, data):
            for name, file in found:
                files[name].add(file)
    if not files:
        sys.exit(f"no counters below {build}: scripts/build coverage, then run tests")
    folders = collections.defaultdict(list)
    for name, file in files.items():
        folders[os.path.dirname(name)].append(file)
    if below:
        chosen = {name: file for name, file in files.items() if name.startswith(below)}
        print_table("file", {name: [file] for name, file in chosen.items()})
        for name, file in sorted(chosen.items()):
            print(f"{name}: never ran: {never_run(file) or 'nothing'}")
    print_table("folder", folders)


if __name__ == "__main__":
    main(*sys.argv[1:])
