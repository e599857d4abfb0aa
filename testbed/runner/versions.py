"""The versions with which a run was made: this project's commit, programs, the machine."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import node
from experiments.records.run_record import MachineRecord

PROJECT = Path(__file__).resolve().parents[2]
ANSWER_TIMEOUT_S = 20.0


def versions() -> dict[str, str | None]:
    """Return the versions of the programs that a run uses; None if unknown."""
    return {
        "python": platform.python_version() + (", nodes compiled" if node.COMPILED else ""),
        "cutset": _installed("cutset"),
        "kernel": platform.release(),
        "mininet": _installed("mininet"),
        "tcpdump": _first_line(["tcpdump", "--version"]),
    }


def described_machine() -> MachineRecord:
    """Return the name and size of this machine."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MachineRecord(platform.node(), os.cpu_count(), memory_bytes)


def commit() -> str | None:
    """Return the checked-out commit, with "-changed" if the working tree differs; None without git."""
    known = _first_line(["git", "-C", str(PROJECT), "rev-parse", "HEAD"])
    changes = _first_line(
        ["git", "--no-optional-locks", "-C", str(PROJECT), "status", "--porcelain", "--untracked-files=no"]
    )
    return f"{known}-changed" if known and changes else known


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _first_line(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(done.stdout.splitlines()), None)
