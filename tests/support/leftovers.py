"""What a job may leave on a machine: files, shared memory, sockets. Looked at before and after."""

import os

import processes


def _lines(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()[1:]
    except FileNotFoundError:
        return []


def _listeners():
    """{inode: local address} of listening TCP sockets, as /proc/net/tcp writes them."""
    found = {}
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _lines(path):
            fields = line.split()
            if len(fields) > 9 and fields[3] == "0A":
                found[fields[9]] = fields[1]
    return found


def _readable(local):
    address = local.split(":")[0]
    if address.startswith("0000000000000000FFFF0000"):  # IPv4 through an IPv6 socket
        address = address[-8:]
    if len(address) != 8:
        return address
    return ".".join(str(int(address[i:i + 2], 16)) for i in (6, 4, 2, 0))


def listener_addresses(pids):
    """Addresses (IPv4 as text) that these processes' TCP sockets listen on."""
    listeners = _listeners()
    held = {target for pid in pids for target in processes.open_files(pid).values()}
    return {_readable(local) for inode, local in listeners.items() if f"socket:[{inode}]" in held}


def sockets_in(folder):
    """Unix sockets named below `folder`."""
    return {fields[7] for fields in (line.split() for line in _lines("/proc/net/unix"))
            if len(fields) > 7 and fields[7].startswith(str(folder))}


class Snapshot:
    """Shared memory entries, and what lies in the folder that the job was given as TMPDIR."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.found = {os.path.join("/dev/shm", name) for name in os.listdir("/dev/shm")}
        for top, folders, files in os.walk(self.folder):
            self.found |= {os.path.join(top, name) for name in folders + files}
        self.found |= sockets_in(self.folder)

    def new_since(self, before):
        return sorted(self.found - before.found)
