"""libelastic.so exports elastic_* only, and needs no C++ library of the program's.

Anything else in its dynamic table could clash with another copy inside the user's program.
Usage: exports_test.py LIBRARY
"""

import subprocess
import sys

library = sys.argv[1]
symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                         capture_output=True).stdout
names = [line.split()[-1] for line in symbols.splitlines()]
foreign = [name for name in names if not name.startswith("elastic_")]
assert "elastic_run" in names, symbols
assert not foreign, f"exported besides elastic_*: {foreign}"
needed = subprocess.run(["readelf", "-d", library], check=True, text=True,
                        capture_output=True).stdout
for line in needed.splitlines():
    if "(NEEDED)" in line:
        assert any(name in line for name in ("libc.so", "libm.so", "ld-linux")), line
print(f"{len(names)} symbols, all elastic_*")
