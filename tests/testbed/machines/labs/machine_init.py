"""PID 1 of a machine of the lab: makes the machine out of namespaces, starts its sshd, and reaps.

`python -I -S machine_init.py ORDER`, as first process of new mount, PID, UTS and IPC namespaces, in the
lab's network namespace; ORDER is JSON (see `Order`). It prints "ready" when its sshd listens, then it stays.
Killing it is a power failure. It uses no file of the project, because a machine does not have them.

The root is an overlay (the kernel's Documentation/filesystems/overlayfs.rst): what is written on the machine
goes to a folder that the lab can look into.
"""

import ctypes
import json
import os
import platform
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

CLONE_NEWNET = 0x40000000  # sched.h
MNT_DETACH = 2  # umount(2)
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}  # syscall numbers
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
TUN = (10, 200)
SSHD = "/usr/sbin/sshd"
SSH_LISTENS = ":0016 00000000:0000 0A"  # proc(5), /proc/net/tcp: port 22, state LISTEN
LISTEN_TIMEOUT_S = 20.0

_libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise OSError if a system call failed."""
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(kind: str, where: str, options: str = "") -> None:
    """Call mount(2)."""
    result = _libc.mount(kind.encode(), where.encode(), kind.encode(), 0, options.encode() or None)
    check(result, f"mount {kind} on {where}")


def wire(outside: list[str], inside: list[str]) -> None:
    """Make a network namespace; run `outside` in the lab's namespace, `inside` in the new one
    (ip-link(8)).
    """
    lab = os.open("/proc/self/ns/net", os.O_RDONLY)
    check(_libc.unshare(CLONE_NEWNET), "unshare")
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    check(_libc.setns(lab, CLONE_NEWNET), "setns")
    os.set_inheritable(own, True)
    batch([line.replace("MACHINE", f"/proc/self/fd/{own}") for line in outside], own)
    check(_libc.setns(own, CLONE_NEWNET), "setns")
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    batch(inside)
    os.close(lab)
    os.close(own)


def batch(lines: list[str], *descriptors: int) -> None:
    """Run `ip -batch`."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines).encode(), check=True, pass_fds=descriptors)


def enter_root(lower: str, upper: str, work: str, root: str) -> None:
    """Make the machine's file system the only one (pivot_root(2), "pivot_root(".", ".")")."""
    mount("overlay", root, f"lowerdir={lower},upperdir={upper},workdir={work}")
    mount("proc", f"{root}/proc")
    mount("sysfs", f"{root}/sys")
    mount("tmpfs", f"{root}/dev", "mode=755")
    fill_dev(Path(root) / "dev")
    os.chdir(root)
    check(_libc.syscall(PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    check(_libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


def fill_dev(dev: Path) -> None:
    """Create the devices that every machine has."""
    for name, number in DEVICES.items():
        os.mknod(dev / name, 0o666 | stat.S_IFCHR, os.makedev(*number))
    (dev / "net").mkdir()
    os.mknod(dev / "net/tun", 0o666 | stat.S_IFCHR, os.makedev(*TUN))
    for name, options in (("pts", "newinstance,ptmxmode=0666,mode=620,gid=5"), ("shm", "mode=1777")):
        (dev / name).mkdir()
        mount("devpts" if name == "pts" else "tmpfs", str(dev / name), options)
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, target in links.items():
        (dev / name).symlink_to(target)


def start_sshd(config: str) -> None:
    """Start sshd and wait until it listens."""
    subprocess.Popen([SSHD, "-D", "-e", "-f", config], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + LISTEN_TIMEOUT_S
    while SSH_LISTENS not in Path("/proc/net/tcp").read_text():
        if time.monotonic() > deadline:
            raise TimeoutError("sshd does not listen")
        time.sleep(0.002)


def main(order: str) -> None:
    """Become the machine; never returns."""
    os.umask(0)
    given = json.loads(order)
    wire(given["outside"], given["inside"])
    enter_root(given["lower"], given["upper"], given["work"], given["root"])
    os.umask(0o022)
    socket.sethostname(given["name"])
    os.environ.clear()
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    start_sshd(given["config"])
    os.write(1, b"ready\n")
    os.close(1)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # else pause() would sleep on
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
