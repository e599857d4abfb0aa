"""The messages of gateways' routing protocols (OSPF, BGP, BFD) on links, named by tshark.

They are the packets with a gateway's address on a link as their source, as captured on that gateway's side.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np

from analysis.capture.pcap.fields import Columns
from analysis.capture.time_range import TimeRange
from analysis.errors import AnalysisError
from analysis.inspect.packets.selection import Mask, PacketSelection, write_file
from analysis.taps.run_captures import captures_of
from analysis.timelines.run_metadata import RunMetadata
from experiments import child_processes
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

TSHARK = "tshark"
FIELDS = (
    "frame.interface_name",
    "frame.time_epoch",
    "ip.src",
    "frame.len",
    "_ws.col.Protocol",
    "_ws.col.Info",
)
TIMEOUT_S = 600.0
ROUTING_KEYS = ("t_ns", "link", "from", "to", "bytes", "protocol", "message")


def routing_messages(
    run: RunDirectory, metadata: RunMetadata, times: TimeRange, links: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield the messages on some links, or on all if none is named, by time. Their `message` is tshark's
    description.

    Raises InputError if the run has no routing protocol, AnalysisError if tshark is missing or fails.
    """
    plan = run.read_run().plan
    if plan.routing is None:
        raise InputError(
            "--routing", None, "", "this run's routes are fixed: see `routing:` in docs/links.md"
        )
    if shutil.which(TSHARK) is None:
        raise AnalysisError(f"{TSHARK} is not installed; it names the messages of routing protocols")
    sides = {}
    for each in plan.links:
        if each.kind == "wan" and (not links or each.name in links):
            sides[f"{each.name}@{each.a}"] = (each.a_address, each.name, each.a, each.b)
            sides[f"{each.name}@{each.b}"] = (each.b_address, each.name, each.b, each.a)
    own = [int(ip_address(address)) for address, *_ in sides.values()]

    def mask(columns: Columns) -> Mask:
        found: Mask = np.isin(columns["src_lo"], own) & (columns["src_hi"] == 0)
        return found

    taps = [tap for tap in captures_of(run) if tap.name in sides]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "routing.pcapng"
        if not write_file(file, metadata, PacketSelection(taps, times, mask)).packets:
            return
        for line in _tshark_lines(file):
            capture, epoch_s, source, length, protocol, text = line.split("\t")
            address, link, sender, receiver = sides[capture]
            if source == address:
                seconds, _, fraction = epoch_s.partition(".")
                t_ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])
                shown = (t_ns, link, sender, receiver, int(length), protocol, text)
                yield dict(zip(ROUTING_KEYS, shown, strict=True))


def _tshark_lines(file: Path) -> list[str]:
    fields = (part for name in FIELDS for part in ("-e", name))
    command = [TSHARK, "-n", "-r", str(file), "-T", "fields", "-E", "occurrence=f", *fields]
    try:
        done = child_processes.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise AnalysisError(f"{TSHARK} does not work: {error}") from error
    return str(done.stdout.decode(errors="replace")).splitlines()
