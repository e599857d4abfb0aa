"""A program's wrong clock, by libfaketime (preloaded): only its CLOCK_REALTIME is wrong, as when a real clock
is set.

libfaketime reads how far the clock is ahead from a file, at each call. Versions 0.9.10 to 3.0.1 treat waits
for a time of CLOCK_MONOTONIC as if that clock were faked, too: clock_nanosleep(2), which is Python's
time.sleep, fails with EINVAL, and timers expire at wrong times. So programs get a copy in which these
functions cannot be found, and wait by the true clock.
"""

import os
import shutil
import struct
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from node.core.wrong_clock import WrongClock

LIBRARY = "libfaketimeMT.so.1"
FOLDERS = (
    f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}/faketime",  # Debian
    "/usr/lib64/faketime",
    "/usr/lib/faketime",
    "/usr/local/lib/faketime",
)
TRUE_WAITS = ("clock_nanosleep", "timer_gettime", "timer_settime", "timerfd_gettime", "timerfd_settime")
PERIOD_S = 0.1
"""Interval between updates of a drift: at 200 ppm the clock then moves in steps of 20 us."""
SCRIPTS_MAX = 4  # interpreters of interpreters
HEADERS_BYTES = 4096  # of an executable, with its program headers
PT_INTERP, PT_NOTE = 3, 4  # elf(5)


class ClockNotFakedError(OSError):
    """The clock of a program cannot be made wrong."""


class FakedClock:
    """The clock of the programs that start with `variables`. folder: for its files."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / LIBRARY, folder / "clock"

    def prepare(self, command: Sequence[str], path: str) -> Mapping[str, str]:
        """Write its files; return the environment variables. Raises ClockNotFakedError."""
        if (problem := why_not_faked(command, path)) is not None:
            raise ClockNotFakedError(problem)
        library = _library()
        assert library is not None  # see `why_not_faked`
        content = library.read_bytes()
        for name in TRUE_WAITS:
            content = content.replace(f"\0{name}\0".encode(), f"\0_{name[1:]}\0".encode(), 1)
        self._library.write_bytes(content)
        self.write(0)
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # else waits for conditions by CLOCK_MONOTONIC end at once
            "NO_FAKE_STAT": "1",
        }

    def write(self, ahead_us: int) -> None:
        """Set how far the clock is ahead."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead_us / 1e6:+.6f}\n")
        new.rename(self._file)

    def follow(self, clock: WrongClock, now_us: int) -> bool:
        """Set the clock as it is at `now_us` (CLOCK_REALTIME); return whether it drifts."""
        self.write(clock.ahead_us(now_us))
        return clock.drift_ppm != 0


def why_not_faked(command: Sequence[str], path: str) -> str | None:
    """Return why the clock of this command cannot be made wrong, or None. path: PATH."""
    if _library() is None:
        return "libfaketime is not installed (Debian: package libfaketime)"
    name: str | None = command[0]
    for _ in range(SCRIPTS_MAX):
        file = shutil.which(name, path=path) if name else None
        if file is None:
            return None  # its absence is reported elsewhere
        if (problem := executable_problem(Path(file))) is not None:
            return problem
        name = _interpreter(Path(file))
    return None


def executable_problem(file: Path) -> str | None:
    """Return why an executable's clock cannot be made wrong, or None."""
    try:
        with file.open("rb") as opened:
            head = opened.read(HEADERS_BYTES)
            if head[:4] != b"\x7fELF":
                return None
            notes, has_loader = b"", False
            for kind, offset, size in _segments(head):
                has_loader = has_loader or kind == PT_INTERP
                if kind == PT_NOTE:
                    opened.seek(offset)
                    notes += opened.read(min(size, HEADERS_BYTES))
        owns_privileges = file.stat().st_mode & 0o6000 or "security.capability" in os.listxattr(file)
    except (OSError, struct.error):
        return None  # it cannot be read, and cannot run
    if b"Go\0\0" in notes:
        return f"{file} is a Go program, which reads the clock without the C library"
    if not has_loader:
        return f"{file} is linked statically, so that no library can be preloaded"
    if owns_privileges:
        return f"{file} has privileges of its own, so that no library is preloaded"
    return None


def _library() -> Path | None:
    return next((path for each in FOLDERS if (path := Path(each, LIBRARY)).is_file()), None)


def _segments(head: bytes) -> list[tuple[int, int, int]]:
    """Return type, offset and size of each segment in a file (elf(5))."""
    order, is_64 = "<" if head[5] == 1 else ">", head[4] == 2
    (table,) = struct.unpack_from(f"{order}{'Q' if is_64 else 'I'}", head, 32 if is_64 else 28)
    entry_bytes, count = struct.unpack_from(f"{order}HH", head, 54 if is_64 else 42)
    layout = f"{order}IIQQQQ" if is_64 else f"{order}IIIII"
    found = []
    for at in range(table, table + count * entry_bytes, entry_bytes):
        fields = struct.unpack_from(layout, head, at)
        found.append((fields[0], fields[2], fields[5]) if is_64 else (fields[0], fields[1], fields[4]))
    return found


def _interpreter(file: Path) -> str | None:
    """Return the interpreter of a script; None if it is not one."""
    with file.open("rb") as opened:
        line = opened.readline(HEADERS_BYTES)
    words = line[2:].decode(errors="replace").split() if line[:2] == b"#!" else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0] if words else None
