"""A worker's control page (proto/local/control_page.h), seen from outside, read-only.

The page is a memfd that outlives the worker, so what stands on it after a SIGKILL is where the
worker was. It is found through any process of the job that has it open or mapped.
"""

import mmap
import os
import struct

import processes

MAGIC = 0x31504C45
PAGE_BYTES = 4096
# Offsets of control_page.h, version 1.
COMMIT_WORD, OWNER_READY, BEATS, PHASE = 64, 192, 256, 264

OUTSIDE, IN_COLLECTIVE, COMMITTING, ENTERING, RESTORING = 1, 2, 3, 4, 5
STARTING, WAITING, FINISHED = 6, 7, 8
PHASE_NAMES = {0: "unspecified", 1: "outside", 2: "in collective", 3: "committing", 4: "entering",
               5: "restoring", 6: "starting", 7: "waiting", 8: "finished"}


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
        if struct.unpack_from("<I", memory)[0] == MAGIC:
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
    def generation(self):
        return struct.unpack_from("<Q", self.memory, COMMIT_WORD)[0] >> 32

    @property
    def commits(self):
        return (struct.unpack_from("<Q", self.memory, COMMIT_WORD)[0] >> 2) & ((1 << 30) - 1)

    def close(self):
        self.memory.close()
        self.target.close()
