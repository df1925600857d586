"""A standing rendezvous server that a test ends and starts again at the same address."""

import pathlib
import signal
import subprocess

from waiting import wait_until

LISTENS = "submits a job"


class Server:
    """elastic-rendezvous without a job of its own."""

    def __init__(self, context):
        self._program = context.program("elastic-rendezvous")
        folder = pathlib.Path(context.folder) / f"s{context.random.getrandbits(24):x}"
        folder.mkdir(mode=0o700)
        self.address, self.status_address = f"unix:{folder}/r", f"unix:{folder}/s"
        self._log = folder / "log"
        self._log.touch()
        self.start()

    @property
    def log(self):
        """What it wrote in all its lives."""
        return self._log.read_text()

    def start(self):
        before = self.log.count(LISTENS)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "--listen", self.address, "--status-address", self.status_address],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_until(lambda: self.log.count(LISTENS) > before, 10,
                   lambda: f"a server that listens; its log:\n{self.log}")

    @property
    def pid(self):
        return self._process.pid

    def send(self, number):
        self._process.send_signal(number)

    def end(self, number=signal.SIGKILL):
        """Returns its exit code."""
        self.send(number)
        return self._process.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)
