"""Runs the demo job, kills a worker in the middle, and tells what happens in plain words."""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import processes
import training
from job import HOSTS, Job
from waiting import TimedOut, wait_until

ACCURACY_MIN = 0.85

INTRODUCTION = """
Four copies of one program train one model together: a small neural network that learns to tell
shirts from shoes (Fashion-MNIST). They run on two hosts; here both are this machine, under the
addresses 127.0.0.1 and 127.0.0.2. While they train, one of them is killed without warning. Usually
that ends such a job, or restarts all of it. Here the other three go on in their processes, a
replacement joins, and no training sample is lost or used twice.

The command:
  {command}

Lines that begin with => are from this script, the others are the job's own output.
"""


class Story:
    """The job, its output as it comes, and what this script says in between."""

    def __init__(self, job):
        self.job = job
        self.shown = 0

    def show_output(self):
        lines = list(self.job.lines)
        for line in lines[self.shown:]:
            print("   " + line.text)
        self.shown = len(lines)
        sys.stdout.flush()
        return False

    def say(self, text):
        self.show_output()
        for line in text.split("\n"):
            print("=> " + line, flush=True)

    def until(self, condition, timeout, what):
        return wait_until(lambda: self.show_output() or condition(), timeout, what, every=0.05)

    def running_at(self, size, above=0):
        def look():
            status = self.job.status()
            assert self.job.process.poll() is None, "the job ended early"
            good = (status is not None and status.size == size and status.generation > above
                    and len(status.members) == size)
            return status if good else None
        return self.until(look, 60, f"a generation of {size} workers")


def members_text(status):
    return "\n".join(f"  rank {w.rank}: process {w.pid} on {w.host}" for w in status.members)


def tell(story, kill_step):
    job = story.job
    before = story.running_at(4)
    story.say(f"All four workers train (generation {before.generation}):\n{members_text(before)}")
    story.until(lambda: max(training.losses(l.text for l in job.lines), default=0) >= kill_step,
                120, f"step {kill_step}")
    victim = before.members[2]
    story.say(f"Now rank 2 is killed in the middle of its work: kill -9 {victim.pid}")
    job.kill(victim.pid)
    survivors = {w.pid for w in before.members} - {victim.pid}
    after = story.running_at(4, above=before.generation)
    pids = {w.pid for w in after.members}
    assert survivors <= pids, f"a survivor was restarted: {survivors} not in {pids}"
    assert victim.pid not in pids
    newcomer = next(w for w in after.members if w.pid not in survivors)
    story.say(f"The size is 4 again (generation {after.generation}):\n{members_text(after)}")
    story.say("The other three are the same processes as before; only rank "
              f"{newcomer.rank}, process {newcomer.pid}, is new.")
    loss = next((r for r in after.resets if r.get("cause")), None)
    if loss is not None:
        stood = sum(loss.get(part, 0) for part in ("answers_ms", "form_ms", "enter_ms"))
        story.say("The job's record of the loss (elastic-ctl status shows it, too):\n"
                  f"  {loss['cause']}\n"
                  f"  {stood:.1f} ms after the report of it all {loss['size_after']} trained on")
    story.until(lambda: job.process.poll() is not None, 300, "the end of the training")
    job.wait_exit(10)
    story.show_output()


def check_end(story):
    job = story.job
    code = job.process.returncode
    assert code == 0, f"elastic-run ended with exit code {code}"
    accuracy = training.accuracy([line.text for line in job.lines])
    assert accuracy >= ACCURACY_MIN, f"test accuracy {accuracy}, expected at least {ACCURACY_MIN}"
    left = processes.descendants(os.getpid())
    assert not left, f"left behind: {processes.describe(left)}"
    story.say(f"Done. The model is right on {100 * accuracy:.1f} % of pictures that it has never "
              "seen,\nas after an undisturbed training (about 86 %). Exit code 0; no process is "
              "left.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--step-time", default="15ms", help="pace of the training (15ms)")
    parser.add_argument("--kill-step", type=int, default=300, help="kill at about this step (300)")
    options = parser.parse_args()
    processes.become_subreaper()
    build = pathlib.Path(options.build).resolve()
    program = os.path.relpath(build / "bin" / "fashion_mnist")
    arguments = ["-np", "4", "--min-np", "2", "-H", HOSTS]
    command = [program, "--step-time", options.step_time]
    print(INTRODUCTION.format(command=" ".join(
        [os.path.relpath(build / "bin" / "elastic-run"), *arguments, *command])), flush=True)
    folder = tempfile.mkdtemp(prefix="ed-")
    try:
        with Job(build, arguments, command, env={"TMPDIR": folder}) as job:
            story = Story(job)
            tell(story, options.kill_step)
            check_end(story)
    except (AssertionError, TimedOut) as error:
        print(f"=> This went wrong: {error}")
        sys.exit(1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
