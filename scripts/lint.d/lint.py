"""scripts/lint: holds the sources to the project's rules (rules.py) and tools.

  scripts/lint           everything: text rules, clang-format, headers alone, clang-tidy
  scripts/lint --fast    text rules and clang-format only (a few seconds)

Compiling checks are cached under build/lint by the content of a file and of everything of ours that
it includes, so only what changed is checked again. clang-tidy takes its flags from the
compile_commands.json of a build (build/dev; scripts/build dev makes one).
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import time

import documented
import rules
import sources
import tidy

ROOT = pathlib.Path(__file__).resolve().parents[2]


def text_problems(files):
    yield from layer_cycles(rules.LAYERS)
    for path in files:
        text = sources.read(path)
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > rules.COLUMNS_MAX and path.suffix == ".py":
                yield f"{path}:{number}: {len(line)} columns; the limit is {rules.COLUMNS_MAX}"
        lines = text.count("\n")
        if lines > rules.LINES_MAX and path.suffix in sources.CODE:
            yield f"{path}: {lines} lines; the limit is {rules.LINES_MAX}: one idea per file"
        yield from banned(path, text)
        if path.suffix in sources.CPP:
            yield from layer_problems(path, text)
        for line, declaration in documented.undocumented(path, text):
            yield f"{path}:{line}: no comment says what this is: `{declaration}`"
        if path.suffix == ".h" and not re.search(r"#pragma once|#ifndef \w+_H_", text):
            yield f"{path}: no #pragma once"


def layer_cycles(layers):
    """The table itself: what may include what must not lead back."""
    folders = [folder for folder, _ in layers]
    below = {folder: {f for f in folders for a in allowed
                      if f != folder and (f == a or f.startswith(a + "/"))}
             for folder, allowed in layers if "" not in allowed}

    def search(folder, path):
        if folder in path:
            yield path[path.index(folder):] + [folder]
            return
        for other in sorted(below.get(folder, ())):
            yield from search(other, path + [folder])

    found = set()
    for folder in below:
        for cycle in search(folder, []):
            if frozenset(cycle) not in found:
                found.add(frozenset(cycle))
                yield "scripts/lint.d/rules.py: a circle of layers: " + " -> ".join(cycle)


def banned(path, text):
    name = str(path)
    code = sources.strip(text) if path.suffix in sources.CPP | {".proto"} else None
    for what, pattern, where, exceptions, why in rules.BANNED:
        if not any(re.search(w, name) for w in where):
            continue
        if any(re.search(e, name) for e in exceptions):
            continue
        haystack = text if what.endswith("(text)") else code
        if haystack is None:
            continue
        for match in re.finditer(pattern, haystack, re.MULTILINE):
            line = haystack.count("\n", 0, match.start()) + 1
            found = match.group(0).strip()
            yield f"{path}:{line}: {what.replace(' (text)', '')}: `{found}`: {why}"


def layer_problems(path, text):
    name = str(path)
    layer = next((row for row in rules.LAYERS if name.startswith(row[0] + "/")), None)
    if layer is None:
        yield f"{path}: no layer: add its folder to scripts/lint.d/rules.py"
        return
    allowed = layer[1] + [layer[0]]
    if name.endswith("_test.cc"):
        allowed += rules.TEST_EXTRA
    for line, header in sources.includes(text):
        if rules.HEAVY.search(header) and not header.startswith("proto/"):
            if not any(name.startswith(f + "/") for f in rules.HEAVY_ALLOWED):
                yield f"{path}:{line}: {header}: gRPC, protobuf, Abseil and spdlog stay out of here"
            continue
        if not (ROOT / header).exists() and not header.startswith("proto/"):
            continue
        top = header.split("/")[0]
        if top not in sources.TOP_FOLDERS:
            continue
        if not any(a == "" or header.startswith(a + "/") for a in allowed):
            yield (f"{path}:{line}: may not include {header}: {layer[0]} depends on "
                   f"{', '.join(layer[1]) or 'nothing'} only")


def format_problems(files):
    cpp = [str(p) for p in files if p.suffix in sources.CPP]
    if not cpp:
        return
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *cpp], cwd=ROOT,
                          capture_output=True, text=True)
    for line in done.stderr.splitlines():
        if ": error: " in line or "No such file" in line:
            yield line.replace("code should be clang-formatted", "run clang-format -i on this file")


class Cache:
    """Remembers which (check, content) passed, as empty files under build/lint."""

    def __init__(self, check, salt):
        self.folder = ROOT / "build" / "lint" / check
        self.folder.mkdir(parents=True, exist_ok=True)
        self.salt = salt

    def key(self, path):
        digest = hashlib.sha256(self.salt.encode())
        for used in sources.closure(path):
            digest.update(str(used).encode() + b"\0" + (ROOT / used).read_bytes())
        return self.folder / digest.hexdigest()[:40]


def run_cached(check, salt, paths, command, deadline):
    """Runs command(path) on what is not known to pass; yields problems."""
    cache = Cache(check, salt)
    keys = {p: cache.key(p) for p in paths}
    todo = [p for p in paths if not keys[p].exists()]
    skipped = []

    def one(path):
        if deadline is not None and time.monotonic() > deadline:
            skipped.append(path)
            return None
        return subprocess.run(command(path), cwd=ROOT, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path, done in zip(todo, pool.map(one, todo)):
            if done is None:
                continue
            if done.returncode == 0:
                keys[path].touch()
                continue
            output = done.stdout + done.stderr
            wanted = [line for line in output.splitlines()
                      if re.search(r": (error|warning|fatal error): ", line)]
            yield from wanted or [f"{path}: {output[-400:]}"]
    if skipped:
        names = ", ".join(map(str, skipped[:3]))
        yield f"{check}: no time for {len(skipped)} files ({names} ...): run again to go on"


def built(build):
    """The build's compile_commands.json as text; empty if there is none."""
    database = build / "compile_commands.json"
    return database.read_text() if database.exists() else ""


def proved_by_build(header, known):
    """A source file that includes its own header first has compiled it alone."""
    source = header.with_suffix(".cc")
    if not (ROOT / source).is_file() or f'"{ROOT / source}"' not in known:
        return False
    used = sources.includes(sources.read(source))
    return bool(used) and used[0][1] == str(header)


def header_problems(files, build, deadline):
    known = built(build)
    headers = [p for p in files if p.suffix == ".h" and not proved_by_build(p, known)]
    base = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra",
            "-Wno-missing-field-initializers", "-I", ".", "-I", str(build / "generated"),
            *rules.DEFINITIONS]
    yield from run_cached("headers", " ".join(base), headers,
                          lambda p: [*base, "-include", str(p), "-x", "c++", "/dev/null"], deadline)


def tidy_problems(files, build, deadline):
    known = built(build)
    if not known:
        yield f"clang-tidy needs {build / 'compile_commands.json'}: run scripts/build dev first"
        return
    units = [p for p in files if p.suffix == ".cc" and str(ROOT / p) in known]
    salt = (ROOT / ".clang-tidy").read_text() + subprocess.run(
        ["clang-tidy", "--version"], capture_output=True, text=True).stdout
    cache = Cache("tidy", salt)
    keys = {p: cache.key(p) for p in units}
    todo = [p for p in units if not keys[p].exists()]
    yield from tidy.Tidy(ROOT, build, lambda p: keys[p].touch(), deadline).problems(todo)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="text rules and formatting only")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev",
                        help="a build folder of this checkout (build/dev)")
    parser.add_argument("--budget", type=float, default=None, metavar="SECONDS",
                        help="begin no compiling check after this time; reported as a failure")
    parser.add_argument("paths", nargs="*", help="only these files or folders")
    options = parser.parse_args()
    os.chdir(ROOT)
    files = sources.all_files(options.paths)
    deadline = time.monotonic() + options.budget if options.budget is not None else None
    checks = [("text", lambda: text_problems(files)), ("format", lambda: format_problems(files))]
    if not options.fast:
        checks += [("headers", lambda: header_problems(files, options.build, deadline)),
                   ("tidy", lambda: tidy_problems(files, options.build, deadline))]
    total = 0
    for name, check in checks:
        start = time.monotonic()
        problems = sorted(set(check()))
        for problem in problems:
            print(problem)
        total += len(problems)
        took = time.monotonic() - start
        print(f"lint {name}: {len(problems)} problems, {took:.1f} s", flush=True)
    print(f"lint: {len(files)} files, {total} problems")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
