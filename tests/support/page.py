"""A worker's control page (proto/local/control_page.h), seen from outside, read-only.

The page is a memfd that outlives the worker, so what stands on it after a SIGKILL is where the
worker was. It is found through any process of the job that has it open or mapped.
"""

import mmap
import os
import pathlib
import re
import struct

import processes

MAGIC = 0x31504C45
VERSION = 1
PAGE_BYTES = 4096
# Offsets in version 1; control_page.h asserts them.
COMMIT_WORD = 64
BEATS = 256
PHASE = 264
HELD = 576
HELD_BYTES = 40  # generation, commits, digest, step, offset, bytes
HELD_INDEX = 656
FENCED = 1 << 0


def _phases():
    """{number: name in words} of the enum whose values the worker writes there."""
    header = pathlib.Path(__file__).resolve().parents[2] / "rendezvous" / "base" / "report.h"
    body = re.search(r"enum class Phase\b[^{]*\{(.*?)\};", header.read_text(), re.DOTALL).group(1)
    return {int(number): re.sub(r"(?<=.)([A-Z])", r" \1", name).lower()
            for name, number in re.findall(r"\bk(\w+) = (\d+)", body)}


PHASE_NAMES = _phases()
_NUMBERS = {name: number for number, name in PHASE_NAMES.items()}
OUTSIDE = _NUMBERS["outside"]
IN_COLLECTIVE = _NUMBERS["in collective"]
COMMITTING = _NUMBERS["committing"]
ENTERING = _NUMBERS["entering"]
RESTORING = _NUMBERS["restoring"]


def _inodes_mapped(pid):
    """Inodes of the one-page memfds that the process has mapped."""
    found = set()
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                if "memfd:" in line:
                    fields = line.split()
                    begin, end = (int(v, 16) for v in fields[0].split("-"))
                    if end - begin == PAGE_BYTES:
                        found.add(int(fields[4]))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def _open_by_inode(holder, inodes):
    """A mapping of the first control page among `inodes` that `holder` has open."""
    for fd, target in processes.open_files(holder).items():
        if "memfd:" not in target:
            continue
        path = f"/proc/{holder}/fd/{fd}"
        try:
            stat = os.stat(path)
            if stat.st_ino not in inodes or stat.st_size != PAGE_BYTES:
                continue
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            memory = mmap.mmap(handle, PAGE_BYTES, mmap.MAP_SHARED, mmap.PROT_READ)
        finally:
            os.close(handle)
        magic, version = struct.unpack_from("<IH", memory)
        if magic == MAGIC:
            if version != VERSION:
                raise RuntimeError(f"control page version {version}, page.py knows {VERSION}: "
                                   "compare it with proto/local/control_page.h")
            return memory
        memory.close()
    return None


class Page:
    """The control page of a live worker; keeps working after its death.

    `target` signals the worker at once, for kills in a phase that is short.
    """

    def __init__(self, job, pid):
        self.pid = pid
        self.target = processes.Target(pid, job.pid)
        inodes = _inodes_mapped(pid)
        holders = [pid, *job.agent_and_guardian_of(pid)]
        self.memory = next((m for m in (_open_by_inode(h, inodes) for h in holders) if m), None)
        if self.memory is None:
            self.target.close()
            raise LookupError(f"no control page of process {pid}: mapped {inodes}")

    @property
    def phase(self):
        return struct.unpack_from("<I", self.memory, PHASE)[0]

    @property
    def phase_name(self):
        return PHASE_NAMES.get(self.phase, str(self.phase))

    @property
    def beats(self):
        return struct.unpack_from("<Q", self.memory, BEATS)[0]

    @property
    def fenced(self):
        """It can commit nothing any more in the generation of its word."""
        return bool(struct.unpack_from("<Q", self.memory, COMMIT_WORD)[0] & FENCED)

    @property
    def held(self):
        """(generation, commits, digest, step) of the newest state that it committed."""
        index = struct.unpack_from("<I", self.memory, HELD_INDEX)[0]
        return struct.unpack_from("<IIQQ", self.memory, HELD + HELD_BYTES * index)

    def close(self):
        self.memory.close()
        self.target.close()
