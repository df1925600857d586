"""Processes as /proc shows them: descendants, exact identities, signals that hit nobody else.

A test process is a child subreaper, so that whatever a killed launcher leaves behind becomes a
descendant of the test, where it is found, and can't hide under init.
"""

import ctypes
import os
import signal

PR_SET_CHILD_SUBREAPER = 36


def become_subreaper():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def stat_of(pid):
    """(state, parent pid, start time in ticks), or None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[1]), int(fields[19])


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid):
    """True while the process exists and is no zombie."""
    stat = stat_of(pid)
    return stat is not None and stat[0] not in "ZX"


def children_map():
    result = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = stat_of(entry)
            if stat is not None:
                result.setdefault(stat[1], []).append(int(entry))
    return result


def descendants(pid):
    """All processes below pid, zombies included, parents before children."""
    children, found, todo = children_map(), [], [pid]
    while todo:
        for child in children.get(todo.pop(0), []):
            found.append(child)
            todo.append(child)
    return found


def describe(pids):
    return ", ".join(f"{pid} {(stat_of(pid) or '?')[0]} `{command_of(pid) or name_of(pid)}`"
                     for pid in pids) or "none"


def is_below(pid, ancestor):
    while pid not in (0, 1, ancestor):
        stat = stat_of(pid)
        if stat is None:
            return False
        pid = stat[1]
    return pid == ancestor


class Target:
    """A process that was found to be a descendant of `below`: a pid that is used again can't be
    hit. Finding it takes long, signalling it does not, so that a phase of a millisecond can be."""

    def __init__(self, pid, below):
        self.pid = pid
        self.fd = os.pidfd_open(pid)
        if not is_below(pid, below):
            os.close(self.fd)
            raise ProcessLookupError(f"{pid} is not a descendant of {below}")

    def send(self, number=signal.SIGKILL):
        signal.pidfd_send_signal(self.fd, number)

    def close(self):
        os.close(self.fd)


def send(pid, number, below):
    target = Target(pid, below)
    try:
        target.send(number)
    finally:
        target.close()


def reap_orphans(known):
    """Waits for ended children that came to us as their subreaper, except those in `known`."""
    for pid in children_map().get(os.getpid(), []):
        if pid not in known:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def open_files(pid):
    """Targets of the process's descriptors."""
    result = {}
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                result[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
            except FileNotFoundError:
                pass
    except (FileNotFoundError, ProcessLookupError):
        pass
    return result
