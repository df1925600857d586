"""Reading the project's sources for scripts/lint: file lists, includes, code without comments."""

import functools
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP_FOLDERS = {"proto", "rendezvous", "launcher", "collectives", "worker_runtime", "tests"}
CPP = {".h", ".cc"}
CODE = CPP | {".py", ".proto", ".cmake"}
TEXT = CODE | {".md", ".txt", ".json", ".c", ""}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def all_files(only=()):
    """Tracked files and new ones that git does not ignore."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *only], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout.splitlines()
    paths = sorted(set(map(pathlib.Path, listed)))
    return [p for p in paths if (ROOT / p).is_file() and p.suffix in TEXT and p.name != "LICENSE"]


@functools.lru_cache(maxsize=None)
def read(path):
    return (ROOT / path).read_text(errors="replace")


def includes(text):
    """(line, header) of every include."""
    return [(text.count("\n", 0, m.start()) + 1, m.group(2)) for m in INCLUDE.finditer(text)]


@functools.lru_cache(maxsize=None)
def closure(path):
    """The file and all of ours that it includes, in a fixed order."""
    seen, todo = set(), [pathlib.Path(path)]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        for _, header in includes(read(current)):
            if (ROOT / header).is_file():
                todo.append(pathlib.Path(header))
    return sorted(seen)


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^()\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'", re.DOTALL)


@functools.lru_cache(maxsize=None)
def strip(text):
    """The code without comments and without the contents of string literals; lines keep their
    numbers, includes their names."""
    def blank(match):
        token = match.group(0)
        return "".join(c if c == "\n" else " " for c in token)

    # Angle brackets keep the names of headers from being taken for strings; a digit separator must
    # not open a character literal.
    text = INCLUDE.sub(lambda m: f"#include <{m.group(2)}>", text)
    text = re.sub(r"(?<=\d)'(?=\d)", "_", text)
    return TOKEN.sub(blank, text)
