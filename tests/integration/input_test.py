"""Bad input: one clear line that names the value and the remedy, exit 2, nothing started."""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
# pylint: disable=wrong-import-position
import runner

# (arguments, words that the line must have)
CASES = [
    (["--frobnicate", "-np", "2", "true"], ["--frobnicate"]),
    (["-np", "0", "true"], ["-np", "0"]),
    (["-np", "-3", "true"], ["-np", "-3"]),
    (["-np", "two", "true"], ["-np", "two"]),
    (["-np", "2"], ["command"]),
    (["true"], ["-np"]),
    (["true", "-np", "2"], ["-np", "before it"]),
    (["--min-np", "5", "-np", "3", "true"], ["--min-np", "5", "3"]),
    (["--min-np", "0", "-np", "3", "true"], ["--min-np", "0"]),
    (["-np", "2", "-H", "127.0.0.1:x", "true"], ["127.0.0.1:x"]),
    (["-np", "2", "-H", "127.0.0.1:0", "true"], ["127.0.0.1:0"]),
    (["-np", "2", "-H", "127.0.0.1:2,,127.0.0.2:2", "true"], ["-H"]),
    (["-np", "2", "-H", "127.0.0.1:1,127.0.0.1:1", "true"], ["127.0.0.1"]),
    (["-np", "2", "-H", "$(touch pwned):2", "true"], ["$(touch pwned)"]),
    (["-np", "2", "-H", "-oProxyCommand=x:2", "true"], ["-oProxyCommand"]),
    (["-np", "4", "-H", "127.0.0.1:2", "true"], ["4", "2"]),
    (["-np", "2", "-H", "127.0.0.1:1,localhost:1", "true"], ["127.0.0.1", "localhost"]),
    (["-np", "2", "-H", "127.255.255.255:2", "true"], ["127.255.255.255"]),
    (["-np", "2", "-H", "127.0.0.256:2", "true"], ["127.0.0.256", "IPv4"]),
    (["-np", "2", "--heartbeat-timeout", "soon", "true"], ["--heartbeat-timeout", "soon"]),
    (["-np", "2", "--grace-period", "-1s", "true"], ["--grace-period", "-1s"]),
    (["-np", "2", "--log-level", "loud", "true"], ["--log-level", "loud"]),
    (["-np", "2", "--status-address", "127.0.0.1:99999", "true"], ["127.0.0.1:99999", "65535"]),
    (["-np", "2", "--status-address", "127.0.0.1:", "true"], ["127.0.0.1:", "65535"]),
    (["-np", "2", "--status-address", "45", "true"], ["--status-address", "45"]),
    (["-np", "2", "no-such-command-anywhere"], ["no-such-command-anywhere"]),
    (["-np", "2", "./no/such/file"], ["./no/such/file"]),
    (["-np", "2", "/etc/passwd"], ["/etc/passwd"]),
]


def BadInputIsRefusedWithOneLineAndExitTwo(context):
    marker = context.folder / "started"
    problems = []
    for arguments, words in CASES:
        # A worker that ran would leave the marker.
        given = [str(marker) if a == "true" else a for a in arguments]
        marker.write_text(f"#!/bin/sh\ntouch {context.folder}/ran\n")
        marker.chmod(0o755)
        done = subprocess.run([context.program("elastic-run"), *given], cwd=context.folder,
                              capture_output=True, text=True, timeout=20, check=False,
                              stdin=subprocess.DEVNULL)
        lines = (done.stdout + done.stderr).strip().splitlines()
        if done.returncode != 2:
            problems.append(f"{given}: exit {done.returncode}, expected 2: {lines}")
        elif len(lines) != 1:
            problems.append(f"{given}: {len(lines)} lines, expected one: {lines}")
        elif not all(w in lines[0] for w in words):
            problems.append(f"{given}: the line must name {words}: {lines[0]}")
        if (context.folder / "ran").exists() or (context.folder / "pwned").exists():
            problems.append(f"{given}: something was started")
    assert not problems, "\n".join(problems)


def HelpAndVersionExitWithZero(context):
    for program in ("elastic-run", "elastic-ctl", "elastic-rendezvous"):
        for flag in ("--help", "--version"):
            done = subprocess.run([context.program(program), flag], capture_output=True, text=True,
                                  timeout=10, check=False, stdin=subprocess.DEVNULL)
            assert done.returncode == 0 and done.stdout.strip(), (program, flag, done)


def _words_below(text, title, until):
    """The words between `title` and `until`; line breaks and indents count for nothing."""
    assert title in text, f"{title!r} is not in {text}"
    return text.split(title, 1)[1].split(until, 1)[0].split()


def TheReadmeHasTheExitCodesOfHelpAndNoFlagThatHelpDoesNotKnow(context):
    help_text = subprocess.run([context.program("elastic-run"), "--help"], capture_output=True,
                               text=True, timeout=10, check=True).stdout
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    codes = _words_below(help_text, "Exit codes:\n", "\n\n")
    assert codes[0] == "0" and "143" in codes, codes
    assert _words_below(readme, "Exit codes, as `elastic-run --help` has them, too:\n\n",
                        "\n\n") == codes
    # What is said of elastic-run; other programs have flags of their own.
    use = readme.split("## How to use it", 1)[1].split("A program takes part through", 1)[0]
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", use))
    known = set(re.findall(r"--[a-z][a-z-]+", help_text))
    assert {"--min-np", "--start-timeout"} <= flags & known, (flags, known)
    assert flags <= known, flags - known


def TextThatCannotBeWrittenIsAnError(context):
    with open("/dev/full", "w", encoding="ascii") as full:
        for program in ("elastic-run", "elastic-ctl", "elastic-rendezvous"):
            for flag in ("--help", "--version"):
                done = subprocess.run([context.program(program), flag], stdout=full, text=True,
                                      stderr=subprocess.PIPE, timeout=10, check=False)
                assert done.returncode == 2, (program, flag, done)
                assert "standard output" in done.stderr, (program, flag, done)


def AnAgentStartedByHandSaysWhoStartsIt(context):
    done = subprocess.run([context.program("elastic-agent"), "--help"], capture_output=True,
                          text=True, timeout=10, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "elastic-run" in done.stderr, done


def AMissingDataSetEndsTheJobWithOneAndTheProgramSaysTwo(context):
    folder = context.new_folder("empty")
    program = context.program("fashion_mnist")
    with context.job(["-np", "2"], [program, "--data", str(folder)]) as job:
        job.expect_exit(1, 20)
        line = job.find(str(folder))
        assert line is not None, job.output
        assert "exit code 2" in job.output or "exit 2" in job.output, job.output
        print(f"  says: {line.text}")


def AProgramWhoseAgentIsUnreachableExitsWithTwo(context):
    environment = {**os.environ, "ELASTIC_AGENT_SOCKET": str(context.folder / "nobody.sock"),
                   "ELASTIC_JOB_ID": "a-job"}
    for program, arguments in (("oracle_worker", []), ("fashion_mnist", [])):
        done = subprocess.run([context.program(program), *arguments], env=environment, timeout=20,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 2, done
        assert "nobody.sock" in done.stderr + done.stdout, done


def AHalfSetEnvironmentIsRefusedRatherThanTrainedAlone(context):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ELASTIC_")}
    environment["ELASTIC_JOB_ID"] = "a-job"
    done = subprocess.run([context.program("oracle_worker")], env=environment, timeout=20,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2, done
    assert "ELASTIC_AGENT_SOCKET" in done.stderr, done


def AWorkerWhoseAgentIsUnreachableEndsTheJobWithOne(context):
    """Inside a job: the environment that the worker hands to the runtime names a dead socket."""
    with context.job(["-np", "1"],
                     ["env", f"ELASTIC_AGENT_SOCKET={context.folder}/nobody.sock",
                      context.program("oracle_worker")]) as job:
        job.expect_exit(1, 20)
        assert job.find("nobody.sock") is not None, job.output


if __name__ == "__main__":
    runner.main(globals())
