"""A program that runs on a machine as root and reports facts about it; it changes nothing.

It is sent to the machine (`testbed.machines.software.deploy`), and written for old versions of Python, so
that old machines can answer, too. It reads the request, one line of JSON, from standard input and answers
with the facts, one line of JSON. To each empty line that follows it answers with its clock, nanoseconds
since 1970. The kernel ends it if it receives no input for `PATIENCE_S`, or the seconds of its argument.

Request: `tools` (programs to look for), `folder` (where we may write), `port` (UDP, of the tunnels), `peers`
(pairs: an own address, and another machine's), `probe_bytes` (the size of packets that must reach the peers),
and `attempts` (by name: a command that should succeed).
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import select
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from testbed.capturing.icmp import IP_AND_ICMP_BYTES, echo_reply, echo_request
from testbed.machines.run_folders import run_folders, size_bytes, state
from testbed.machines.software.trusted_folders import why_not_trusted
from testbed.machines.ssh.time_limit import limited

PATIENCE_S = 60.0
SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
ATTEMPT_TIMEOUT_S = 10.0
ECHO_ROUNDS, ECHO_WAIT_S = 3, 0.4
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3  # linux/in.h: do not fragment, ignore the path MTU
CLOCK_UNSYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
ADJTIMEX_BYTES, ADJTIMEX_STATUS = 256, slice(40, 44)  # on 64-bit machines


def main(patience_s: float = PATIENCE_S) -> None:
    """Answer the request, then answer with clock readings until the input ends."""
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_DIRECTORIES])
    request = json.loads(line(patience_s))
    say(json.dumps(facts(request)))
    while line(patience_s):
        say(str(time.time_ns()))


def line(patience_s: float) -> str:
    """Return the next line of standard input, empty at its end."""
    with limited(patience_s):
        return sys.stdin.readline()


def say(line: str) -> None:
    """Write one line to standard output."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def facts(request: dict[str, Any]) -> dict[str, Any]:
    """Return all requested facts."""
    interfaces = addresses()
    return {
        "python": platform.python_version(),
        "abi": sysconfig.get_config_var("SOABI"),
        "kernel": platform.release(),
        "uid": os.getuid(),
        "missing": [tool for tool in request["tools"] if shutil.which(tool) is None],
        "attempts": {name: attempt(command) for name, command in request["attempts"].items()},
        "addresses": interfaces,
        "echoes": echoes(request["peers"], interfaces, request["probe_bytes"]),
        "port_holder": udp_holder(request["port"]),
        "folder": folder(Path(request["folder"])),
        "memory_bytes": memory(),
        "processors": os.cpu_count(),
        "synchronised": synchronised(),
        "runs": runs(Path(request["folder"])),
    }


def attempt(command: list[str]) -> str | None:
    """Run a command; returns its error, or None if it succeeds."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ATTEMPT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = " ".join(done.stdout.decode(errors="replace").split())
    return None if done.returncode == 0 else said or f"exit code {done.returncode}"


def addresses() -> dict[str, dict[str, Any]]:
    """Return, by IPv4 address, its interface, the interface's MTU and whether it is up."""
    try:
        listed = subprocess.run(["ip", "-j", "-4", "address"], stdout=subprocess.PIPE, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {
        address["local"]: {
            "interface": each["ifname"],
            "mtu": each["mtu"],
            "up": "LOWER_UP" in each["flags"],
        }
        for each in json.loads(listed)
        for address in each.get("addr_info", [])
    }


def echoes(
    peers: list[list[str]], interfaces: dict[str, dict[str, Any]], probe_bytes: int
) -> list[dict[str, Any]]:
    """Measure whether other machines answer small and large packets, from the own address of each pair."""
    results = []
    for own in sorted({own for own, _ in peers if own in interfaces}):
        others = [peer for from_, peer in peers if from_ == own]
        large_bytes = min(probe_bytes, interfaces[own]["mtu"])
        small, large = answers(own, others, (64, large_bytes))
        results += [
            {"own": own, "peer": peer, "small_s": small.get(peer), "large_s": large.get(peer)}
            for peer in others
        ]
    return results


def answers(own: str, peers: list[str], sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Return, for each size of packets, the shortest round trip to each answering peer."""
    found: list[dict[str, float]] = [{} for _ in sizes]
    number = os.getpid() & 0xFFFF
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        sock.bind((own, 0))
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        for _ in range(ECHO_ROUNDS):
            waiting = [(at, peer) for at in range(len(sizes)) for peer in peers if peer not in found[at]]
            for at, peer in waiting:
                try:
                    sent = struct.pack("!d", time.monotonic()).ljust(sizes[at] - IP_AND_ICMP_BYTES, b"\0")
                    sock.sendto(echo_request(number, at, sent), (peer, 0))
                except OSError:
                    continue  # too large for the path, or no route: it counts as not answered
            if waiting:
                listen(sock, number, found, len(peers))
    return found


def listen(sock: socket.socket, number: int, found: list[dict[str, float]], peers: int) -> None:
    """Receive replies until all have arrived or the time is over."""
    end = time.monotonic() + ECHO_WAIT_S
    while any(len(each) < peers for each in found):
        left = end - time.monotonic()
        if left <= 0 or not select.select([sock], [], [], left)[0]:
            return
        packet, (peer, _) = sock.recvfrom(65535)
        reply = echo_reply(packet)
        if reply is not None and reply.identifier == number and reply.sequence < len(found):
            round_trip = time.monotonic() - struct.unpack_from("!d", reply.payload)[0]
            at = found[reply.sequence]
            at[peer] = min(round_trip, at.get(peer, round_trip))


def udp_holder(port: int) -> str | None:
    """Return the process that has this UDP port, or None. A tunnel of the kernel is not a process."""
    inodes = set()
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        rows = [line.split() for line in lines]
        inodes |= {row[9] for row in rows if int(row[1].rpartition(":")[2], 16) == port}
    links = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*") if links else ():
        try:
            if any(os.readlink(str(file)) in links for file in (process / "fd").iterdir()):  # noqa: PTH115 (not in old ones)
                return f"{(process / 'comm').read_text().strip()} (process {process.name})"
        except OSError:
            continue  # it has ended
    return None


def folder(path: Path) -> dict[str, Any]:
    """Return the folder's free space, its versions of the code, and why we may not write there, or None."""
    place = next(each for each in (path, *path.parents) if each.exists())
    try:
        free_bytes = shutil.disk_usage(place).free
        versions = sorted(each.name for each in (path / "code").glob("*") if "." not in each.name)
    except OSError as error:
        return {"free_bytes": 0, "versions": [], "problem": str(error)}
    problem: str | None
    if not place.is_dir():
        problem = f"{place} is not a folder"
    elif not os.access(str(place), os.W_OK) or os.statvfs(place).f_flag & os.ST_RDONLY:
        problem = f"{place} cannot be written"
    else:
        problem = why_not_trusted(path)
    return {"free_bytes": free_bytes, "versions": versions, "problem": problem}


def memory() -> int:
    """Return the available memory in bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def synchronised() -> bool | None:
    """Return whether the kernel considers the clock synchronised; None if unknown."""
    try:
        status = ctypes.create_string_buffer(ADJTIMEX_BYTES)  # modes 0: read only
        if ctypes.CDLL(None).adjtimex(status) < 0:
            return None
    except (OSError, AttributeError):
        return None
    return not int.from_bytes(status.raw[ADJTIMEX_STATUS], sys.byteorder) & CLOCK_UNSYNCHRONISED


def runs(path: Path) -> list[dict[str, Any]]:
    """Return the run folders, their sizes in bytes, and whether they are in use."""
    return [{"name": run.name, "bytes": size_bytes(run), "state": state(run)} for run in run_folders(path)]


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
