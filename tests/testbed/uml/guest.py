"""The first process inside user-mode Linux: makes the machine usable, runs one command, and halts.

`init=PYTHON … -- -m tests.testbed.uml.guest ORDER` on the kernel's command line. The host's file system is
the root, read-only, so what the command writes must go to $TMPDIR, which is in memory. Modules are loaded
by system call, in the order that modules.dep gives, because kmod need not be installed. The last line on
the console is the command's exit code (see `machine`).
"""

import base64
import ctypes
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

MODULES = ("veth", "bridge", "sch_netem", "vxlan")
MODULES_OF_UML = Path("/usr/lib/uml/modules")
FINIT_MODULE = 313  # x86-64 system call number
EXIT_LINE = "user-mode linux: the command's exit code is "
SCRATCH = "/run/scratch"
HALT_TIMEOUT_S = 10.0
RECEIVE_BUFFER_BYTES_MAX = 4 << 20
"""The limit for tests, so that datagrams wait while their receiver gets no processor."""


def mount_all() -> None:
    """Mount the file systems of an init."""
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")):
        subprocess.run(["mount", "-t", kind, kind, where], check=True)
    for kind, where in (("devpts", "/dev/pts"), ("tmpfs", "/dev/shm"), ("tmpfs", SCRATCH)):
        Path(where).mkdir()
        subprocess.run(["mount", "-t", kind, kind, where], check=True)


def enable_controllers() -> None:
    """Delegate the controllers of control groups version 2, as systemd does."""
    groups = Path("/sys/fs/cgroup")
    subprocess.run(["mount", "-t", "cgroup2", "cgroup2", str(groups)], check=True)
    (groups / "cgroup.subtree_control").write_text("+cpu +memory")


def allow_large_receive_buffers() -> None:
    """Let sockets ask for buffers of RECEIVE_BUFFER_BYTES_MAX; only a kernel's own root may allow it."""
    Path("/proc/sys/net/core/rmem_max").write_text(str(RECEIVE_BUFFER_BYTES_MAX))


def load_modules() -> None:
    """Load MODULES and their dependencies."""
    tree = MODULES_OF_UML / platform.release()
    needs = {}
    for line in (tree / "modules.dep").read_text().splitlines():
        path, _, dependencies = line.partition(":")
        needs[Path(path).stem] = [path, *dependencies.split()]
    for name in MODULES:
        for path in reversed(needs[name]):
            _load(tree / path)


def _load(path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("rb") as module:
        if libc.syscall(FINIT_MODULE, module.fileno(), b"", 0) != 0 and ctypes.get_errno() != 17:  # EEXIST
            raise OSError(ctypes.get_errno(), f"cannot load {path}")


def run(directory: str, command: list[str]) -> int:
    """Run the command in a clean environment, as the host would."""
    environment = {
        "PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin",
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(command, cwd=directory, env=environment, check=False).returncode


def encode(directory: str, command: Sequence[str]) -> str:
    """Encode a command as one word for the kernel's command line."""
    return base64.urlsafe_b64encode(json.dumps([directory, list(command)]).encode()).decode()


def main(order: str, *_: str) -> None:
    """Run the command and power off; never returns. The kernel appends words of its own."""
    directory, command = json.loads(base64.urlsafe_b64decode(order))
    try:
        mount_all()
        enable_controllers()
        allow_large_receive_buffers()
        load_modules()
        code = run(directory, command)
        os.write(1, f"{EXIT_LINE}{code}\n".encode())
    finally:
        Path("/proc/sysrq-trigger").write_text("o")
        time.sleep(HALT_TIMEOUT_S)
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
