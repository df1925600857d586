"""clang-tidy over many files at a time.

Nearly all of clang-tidy's time goes into the standard library's headers, which it reads and walks
anew for every file. So files of one folder with the same flags are checked as one that includes
them. Where that finds anything, or files don't go together (two of them have a name of their own
that is the same), the group is halved until it passes or is one file: what is reported is always
what a file shows alone.
"""

import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import time

GROUP = 16
# A group includes .cc files, which is what this check is about.
NOT_IN_GROUPS = "--checks=-bugprone-suspicious-include"


def flags_of(build):
    """{path: the flags that it is compiled with} of the build's compile_commands.json."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        kept, skip = [], False
        for word in words[1:]:
            compiler = word.endswith(("/c++", "/g++", "/clang++"))  # after ccache
            if skip or compiler or word in ("-c", entry["file"]):
                skip = False
                continue
            if word == "-o":
                skip = True
                continue
            # The folder that a relative path begins at is the build's.
            kept.append(re.sub(r"^-I(?!/)", f"-I{entry['directory']}/", word))
        flags[os.path.normpath(os.path.join(entry["directory"], entry["file"]))] = kept
    return flags


def groups(units, flags, root):
    """Lists of files that may be checked together."""
    alike = collections.defaultdict(list)
    for unit in units:
        test = unit.name.endswith("_test.cc")
        alike[unit.parent, test, tuple(flags[str(root / unit)])].append(unit)
    for files in alike.values():
        for i in range(0, len(files), GROUP):
            yield files[i:i + GROUP]


class Tidy:
    """Runs the checks; `passed(file)` is called for each one that is clean."""

    def __init__(self, root, build, passed, deadline):
        self.root, self.build, self.passed, self.deadline = root, build, passed, deadline
        self.flags = flags_of(build)
        self.folder = root / "build" / "lint" / "groups"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.skipped = []

    def _run(self, path, extra, flags):
        return subprocess.run(
            ["clang-tidy", "--quiet", "--warnings-as-errors=*",
             f"--config-file={self.root}/.clang-tidy", *extra, str(path), "--", *flags,
             "-Wthread-safety"],
            cwd=self.root, capture_output=True, text=True)

    def check(self, files):
        """Problems of these files."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            self.skipped += files
            return []
        flags = self.flags[str(self.root / files[0])]
        if len(files) == 1:
            done = self._run(files[0], [], flags)
        else:
            text = "".join(f'#include "{self.root / file}"\n' for file in files)
            group = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cc"
            group.write_text(text)
            done = self._run(group, [NOT_IN_GROUPS], flags)
        if done.returncode == 0:
            for file in files:
                self.passed(file)
            return []
        if len(files) > 1:
            half = len(files) // 2
            return self.check(files[:half]) + self.check(files[half:])
        output = done.stdout + done.stderr
        wanted = [line for line in output.splitlines()
                  if re.search(r": (error|warning|fatal error): ", line)]
        return wanted or [f"{files[0]}: {output[-400:]}"]

    def problems(self, units):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for found in pool.map(self.check, list(groups(units, self.flags, self.root))):
                yield from found
        if self.skipped:
            names = ", ".join(map(str, self.skipped[:3]))
            yield f"tidy: no time for {len(self.skipped)} files ({names} ...): run again to go on"
