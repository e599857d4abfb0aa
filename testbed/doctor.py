"""Checks of this machine: one for each requirement of a run.

A check tries the real operation if that is cheap (it creates a sandbox) and reports what will be used, or
what is missing and how to get it. Nothing is installed or changed. `provision/packages.txt` lists the
packages and the file or command that proves each; the installer reads it too.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from systems.loader import load_system
from systems.names import system_names
from testbed import congestion_control
from testbed.errors import MachineError
from testbed.findings import Finding, FindingState
from testbed.links.selection import kernel_has_netem
from testbed.programs import missing_here, named
from testbed.sandbox import run_in_sandbox
from testbed.sandbox.control_groups import why_no_groups
from testbed.sandbox.requirements import user_namespace_needed

PACKAGES = Path(__file__).parent / "provision" / "packages.txt"
JAVA_MAJOR_MIN = 17
MEMORY_BYTES_ADVISED = 4 << 30
DISK_BYTES_ADVISED = 5 << 30
SBIN = ("/usr/sbin", "/sbin")
NEEDED_TO_RUN = ("machine", "run")
"""Jobs of packages without which nothing runs; without the others some systems or tests do not."""


@dataclass(frozen=True, slots=True)
class Package:
    """A line of packages.txt: a Debian package, the command or file that proves it, its job, the reason."""

    name: str
    proof: str
    job: str
    why: str


def examine() -> Iterator[Finding]:
    """Run all checks one after another, so that each result can be shown at once."""
    yield _python()
    sandbox = _sandbox()
    yield sandbox
    yield _throttles()
    if sandbox.state is FindingState.GOOD:
        yield _images()
    yield _links(sandbox_works=sandbox.state is FindingState.GOOD)
    for package in packages():
        yield _package(package)
    for name in system_names():
        yield _system(name)
    yield _memory_and_processors()
    yield _disk()
    yield _congestion_control()


def packages() -> list[Package]:
    """Return the Debian packages that Cutset needs."""
    lines = (line for line in PACKAGES.read_text().splitlines() if line and not line.startswith("#"))
    return [Package(*line.split(maxsplit=3)) for line in lines]


def java_major(version_text: str) -> int | None:
    """Return the major number in the output of `java -version`, or None."""
    found = re.search(r'version "(\d+)', version_text)
    return int(found[1]) if found else None


def _python() -> Finding:
    return Finding.good("Python", f"{platform.python_version()} at {sys.prefix}")


def _sandbox() -> Finding:
    user = "an ordinary user, in a user namespace" if user_namespace_needed() else "root"
    try:
        run_in_sandbox(["true"])
    except MachineError as error:
        return Finding.missing("sandbox", str(error))
    return Finding.good("sandbox", f"network, mount and PID namespaces as {user}")


def _throttles() -> Finding:
    if (problem := why_no_groups()) is not None:
        return Finding.note("throttle", f"processes cannot be throttled here: {problem}")
    return Finding.good("throttle", "limits of processor time and memory, by control groups")


def _images() -> Finding:
    """Check whether programs in images can share their files: the kernel mounts an overlay for this user."""
    mounting = (
        "mount -n -t tmpfs none /mnt && cd /mnt && mkdir lower upper work && "
        "mount -n -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none /mnt"
    )
    if run_in_sandbox(["sh", "-c", mounting]).returncode == 0:
        return Finding.good("images", "programs of one image share its files (overlayfs)")
    detail = "this kernel mounts no overlayfs here: each program of an image copies its files"
    return Finding.note("images", detail, remedy="Linux 5.11 or later, or run as root")


def _links(*, sandbox_works: bool) -> Finding:
    if sandbox_works and kernel_has_netem():
        return Finding.good("links", "netem, in the kernel")
    find = Finding.good if sandbox_works else Finding.note
    return find("links", "relay (this kernel has no usable sch_netem)")


def _package(package: Package) -> Finding:
    if package.proof.startswith("/"):
        found = next((str(path) for path in Path("/").glob(package.proof[1:])), None)
        subject = package.name
    else:
        path = os.pathsep.join([os.environ.get("PATH", ""), *SBIN])
        subject, found = package.proof, shutil.which(package.proof, path=path)
    if found and package.proof == "java":
        return _java(package, found)
    if found:
        return Finding.good(subject, package.why)
    find = Finding.missing if package.job in NEEDED_TO_RUN else Finding.note
    return find(subject, f"not installed ({package.why})", remedy=f"apt-get install {package.name}")


def _system(name: str) -> Finding:
    """Check whether a bundled system of programs can run here."""
    lacking = missing_here(load_system(name).programs)
    if not lacking:
        return Finding.good(name, "a system of programs")
    detail = f"a system of programs; not installed: {', '.join(map(named, lacking))}"
    return Finding.note(name, detail, remedy="; ".join(dict.fromkeys(need.get for need in lacking)))


def _java(package: Package, path: str) -> Finding:
    output = subprocess.run(
        [path, "-XX:-UsePerfData", "-version"],  # a killed one leaves its counters in /tmp
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    ).stderr
    major = java_major(output)
    if major is not None and major >= JAVA_MAJOR_MIN:
        return Finding.good("java", f"version {major} ({package.why})")
    detail = f"version {major} is too old: {package.why} needs {JAVA_MAJOR_MIN} or later"
    return Finding.missing("java", detail, remedy=f"apt-get install {package.name}")


def _memory_and_processors() -> Finding:
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    detail = f"{os.cpu_count()} processors, {memory_bytes / 2**30:.0f} GiB of memory"
    if memory_bytes < MEMORY_BYTES_ADVISED:
        return Finding.note("machine", detail, remedy=f"{MEMORY_BYTES_ADVISED >> 30} GiB are advised")
    return Finding.good("machine", detail)


def _disk() -> Finding:
    free_bytes = shutil.disk_usage(Path.cwd()).free
    detail = f"{free_bytes / 1e9:.0f} GB free here"
    if free_bytes < DISK_BYTES_ADVISED:
        advice = "one minute of captures takes about 2 GB; set another directory with --out"
        return Finding.note("disk", detail, remedy=advice)
    return Finding.good("disk", detail)


def _congestion_control() -> Finding:
    try:
        current, allowed = congestion_control.default(), congestion_control.allowed()
    except OSError as error:
        return Finding.note("TCP", f"cannot read {error.filename}: {error.strerror}")
    return Finding.good("TCP", f"congestion control {current}; allowed: {', '.join(allowed)}")
