"""The public headers compile alone, without warnings: the C ones as C99 and C++17, others as C++17.

Usage: headers_test.py INCLUDE_FOLDER
"""

import pathlib
import shutil
import subprocess
import sys

STRICT = ["-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror", "-fsyntax-only"]


def compiled(header, compiler, language, standard):
    options = [o for o in STRICT if language == "c" or o != "-Wstrict-prototypes"]
    subprocess.run([compiler, f"-std={standard}", *options, "-x", language, "-I", folder.parent,
                    "-include", f"elastic/{header.name}", "/dev/null"], check=True)


folder = pathlib.Path(sys.argv[1]) / "elastic"
headers = sorted(folder.glob("*.h"))
assert {"elastic.h", "elastic_c.h"} <= {h.name for h in headers}, headers
for one in headers:
    in_c = one.name.endswith("_c.h")
    for name in [n for n in ("g++", "clang++") if shutil.which(n)]:
        compiled(one, name, "c++", "c++17")
    for name in [n for n in ("gcc", "clang") if in_c and shutil.which(n)]:
        compiled(one, name, "c", "c99")
print(f"{len(headers)} headers")
