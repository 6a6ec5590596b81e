"""Hosts, disks and memory that a test may break: network namespaces as hosts around a switch, small disks, cgroups.

All of it belongs to processes of the test and vanishes with them: nothing has a name that another test could meet, and
a test that is killed leaves nothing behind. What this machine does not allow ends in a skipped test, "NOT RUN: why".
"""

import contextlib
import ctypes
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import unittest
from typing import Iterable

from cluster import wait_until

CLONE_NEWNS = 0x00020000
CGROUPS = pathlib.Path("/sys/fs/cgroup")
MIB = 1 << 20


def _need(reason: str, *programs: str):
    """Skips the running test unless it is root's and the programs are there."""
    if os.geteuid() != 0:
        raise unittest.SkipTest(f"NOT RUN: {reason} needs root")
    for program in programs:
        if shutil.which(program) is None:
            raise unittest.SkipTest(f"NOT RUN: {reason} needs the program {program}")


def _run(*command, text: str | None = None):
    answer = subprocess.run([str(part) for part in command], input=text, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with code {answer.returncode}: {answer.stderr}")


class Namespace:
    """A network namespace, held by a process that ends with its standard input."""

    def __init__(self):
        # The shell's first word says that it is inside; cat ends when this process does, however that ends.
        self._holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo inside; exec cat"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self._holder.stdout.readline() != b"inside\n":
            why = self._holder.stderr.read().decode().strip()
            self.close()
            raise unittest.SkipTest(f"NOT RUN: this machine gives no network namespace: {why}")

    @property
    def pid(self) -> int:
        return self._holder.pid

    def enter(self) -> tuple[str, ...]:
        """What to put before a command so that it runs here."""
        return "nsenter", f"--net=/proc/{self.pid}/ns/net", "--"

    def close(self):
        self._holder.kill()
        self._holder.communicate()


class Network:
    """Hosts 0, 1, ... with the addresses 10.77.0.1, 10.77.0.2, ... on one switch, where any two may be cut off."""

    def __init__(self, hosts: int):
        _need("a network of hosts", "ip", "nft", "nsenter", "unshare")
        self._switch = Namespace()
        self._hosts = [Namespace() for _ in range(hosts)]
        self._cuts = set()
        self._in_switch("ip", "link", "add", "br0", "type", "bridge")
        self._in_switch("ip", "link", "set", "br0", "up")
        for index, host in enumerate(self._hosts):
            self._in_switch("ip", "link", "add", f"v{index}", "type", "veth", "peer", "name", "eth0", "netns", host.pid)
            self._in_switch("ip", "link", "set", f"v{index}", "master", "br0", "up")
            _run(*host.enter(), "ip", "address", "add", f"{self.address(index)}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                _run(*host.enter(), "ip", "link", "set", link, "up")

    @staticmethod
    def address(host: int) -> str:
        return f"10.77.0.{host + 1}"

    def enter(self, host: int) -> tuple[str, ...]:
        return self._hosts[host].enter()

    def cut(self, some: Iterable[int], others: Iterable[int]):
        """From now on nothing gets from one side to the other, and nobody is told."""
        others = list(others)
        for a in some:
            self._cuts |= {(a, b) for b in others} | {(b, a) for b in others}
        self._apply()

    def heal(self):
        self._cuts.clear()
        self._apply()

    def _apply(self):
        rules = "\n".join(f'iifname "v{a}" oifname "v{b}" drop' for a, b in sorted(self._cuts))
        table = f"table bridge cuts {{\nchain forward {{\ntype filter hook forward priority 0;\n{rules}\n}}\n}}\n"
        self._in_switch("nft", "-f", "-", text=f"table bridge cuts\ndelete table bridge cuts\n{table}")

    def _in_switch(self, *command, text: str | None = None):
        _run(*self._switch.enter(), *command, text=text)

    def close(self):
        for namespace in (*self._hosts, self._switch):
            namespace.close()


@functools.cache
def leave_the_machines_mounts():
    """From now on this process and its children have mounts of their own, which end with them. Before the children that
    are to see them are started."""
    _need("mounting a small disk", "mount")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise unittest.SkipTest(f"NOT RUN: this machine gives no mount namespace: {os.strerror(ctypes.get_errno())}")
    # In a chroot the root is no mount point, and there is nothing to make private.
    subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, check=False)


class SmallDisk:
    """A disk of its own at `path`, that can be filled and emptied."""

    def __init__(self, path: pathlib.Path, mib: int):
        leave_the_machines_mounts()
        self.path = path
        path.mkdir(parents=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", path)
        self._ballast = path / "ballast"

    def free_bytes(self) -> int:
        disk = os.statvfs(self.path)
        return disk.f_bavail * disk.f_frsize

    def fill(self):
        """To the last byte, whatever is being written or removed beside."""
        def full():
            with self._ballast.open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
                while self.free_bytes() > 0:
                    ballast.write(b"\0" * min(self.free_bytes(), MIB))
            return self.free_bytes() == 0

        wait_until("the disk is full", full)

    def empty(self):
        self._ballast.unlink()

    def close(self):
        _run("umount", "--lazy", self.path)


class MemoryLimit:
    """A cgroup that gives its processes no more than so much memory; the kernel kills one that wants more."""

    def __init__(self, mib: int):
        _need("limiting memory")
        parent, self._limit, self._events = self._hierarchy()
        self._group = parent / f"llmctl-test-{os.getpid()}"
        try:
            self._group.mkdir()
        except OSError as error:
            raise unittest.SkipTest(f"NOT RUN: this machine lets nobody make a cgroup: {error}") from error
        # Only there with cgroup v2: what is swapped out is not killed.
        with contextlib.suppress(FileNotFoundError):
            with (self._group / "memory.swap.max").open("r+") as swap:
                swap.write("0")
        self.set(mib)

    @staticmethod
    def _hierarchy() -> tuple[pathlib.Path, str, str]:
        """Where to make the group, and the names of its limit and its counts: of cgroup v1, else of v2."""
        if (CGROUPS / "memory" / "memory.limit_in_bytes").exists():
            return CGROUPS / "memory", "memory.limit_in_bytes", "memory.oom_control"
        try:
            if "memory" not in (CGROUPS / "cgroup.controllers").read_text().split():
                raise unittest.SkipTest("NOT RUN: limiting memory needs the memory controller of cgroup v1 or v2")
            # The root's children get it; the root itself, unlike other groups, may have processes all the same.
            (CGROUPS / "cgroup.subtree_control").write_text("+memory")
        except OSError as error:
            raise unittest.SkipTest(f"NOT RUN: this machine lets nobody limit memory: {error}") from error
        return CGROUPS, "memory.max", "memory.events"

    def set(self, mib: int):
        (self._group / self._limit).write_text(str(mib * MIB))

    def enter(self) -> tuple[str, ...]:
        return "sh", "-c", f'echo $$ > "{self._group}/cgroup.procs" && exec "$@"', "sh"

    def kills(self) -> int:
        counts = dict(line.split() for line in (self._group / self._events).read_text().splitlines())
        return int(counts["oom_kill"])

    def close(self):
        for pid in (self._group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

        def removed():
            with contextlib.suppress(OSError):
                self._group.rmdir()
            return not self._group.exists()

        wait_until("the cgroup is gone", removed)
