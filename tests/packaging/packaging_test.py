"""An installed copy is all that a user's project needs: find_package and pkg-config, C99 and C++17.

The copy is moved after it was installed, so that nothing can depend on where it was put, and the
programs are run by the elastic-run of the copy as well as without a launcher.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
# pylint: disable=wrong-import-position
import runner

USER = HERE / "user"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def call(command, **options):
    """Runs a command; its output, or an error that shows it."""
    done = subprocess.run([str(word) for word in command], text=True, timeout=100,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}"
    return done.stdout


def installed(context):
    """A fresh copy of the build's installation, moved away from where it was installed."""
    first = context.new_folder("installed") / "first"
    call(["cmake", "--install", context.build, "--prefix", first])
    moved = first.with_name("moved copy")
    shutil.move(first, moved)
    return moved


def library_folder(copy):
    return next(copy.glob("lib*/**/libelastic.so")).parent


def check_runs(copy, program, environment=None):
    """The program is a world of one alone, and two ranks under the copy's elastic-run."""
    environment = {**os.environ, **(environment or {})}
    assert call([program], env=environment) == "rank 0 of 1 counted to 100\n"
    output = call([copy / "bin" / "elastic-run", "-np", "2", "-H", "127.0.0.1:2", "--", program],
                  env=environment)
    for rank in (0, 1):
        assert f"rank {rank} of 2 counted to 100" in output, output


def check_own_test(copy, program):
    """The project's test finds the copy's elastic-run by PATH, and kills a rank of its own."""
    environment = {**os.environ, "PATH": f"{copy / 'bin'}:{os.environ['PATH']}"}
    assert call([program], env=environment) == "survived\n"


def AProjectFindsThePackageWithCMake(context):
    copy = installed(context)
    build = context.new_folder("user")
    call(["cmake", "-S", USER, "-B", build, f"-DCMAKE_PREFIX_PATH={copy}"])
    call(["cmake", "--build", build])
    for program in ("count_c", "count_cc"):
        check_runs(copy, build / program)
    check_own_test(copy, build / "count_test")


def AProjectThatAsksForAnotherMinorVersionIsRefused(context):
    copy = installed(context)
    project = context.new_folder("user")
    text = (USER / "CMakeLists.txt").read_text()
    (project / "CMakeLists.txt").write_text(text.replace("ElasticRun 0.1", "ElasticRun 0.9"))
    done = subprocess.run(["cmake", "-S", project, "-B", project / "b",
                           f"-DCMAKE_PREFIX_PATH={copy}"], capture_output=True, text=True,
                          timeout=100)
    assert done.returncode != 0, done.stdout
    assert 'compatible with requested version "0.9"' in done.stderr, done.stderr


def AProjectFindsThePackageWithPkgConfig(context):
    copy = installed(context)
    build = context.new_folder("user")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(library_folder(copy) / "pkgconfig")}
    # One flag a line would do for any path but one with a space, which pkg-config escapes.
    flags = call(["pkg-config", "--cflags", "--libs", "elasticrun"], env=environment)
    flags = flags.replace("\\ ", "\0").split()
    flags = [flag.replace("\0", " ") for flag in flags]
    found = {"LD_LIBRARY_PATH": str(library_folder(copy))}
    for compiler, standard, source in (("gcc", "c99", "count.c"), ("g++", "c++17", "count.cc")):
        program = build / source.replace(".", "_")
        call([compiler, f"-std={standard}", *STRICT, USER / source, "-o", program, *flags])
        check_runs(copy, program, found)


if __name__ == "__main__":
    runner.main(globals())
