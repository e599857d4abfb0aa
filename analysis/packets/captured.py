"""The captures of a run and the packets in them, by time: what takes bytes from captures reads through this.

A capture that cannot be used is left out, as the analysis does; its table of captures says why.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.clocks.clock import REFERENCE, Clock
from analysis.clocks.machines import clock_of_capture
from analysis.clocks.making import read_clocks
from analysis.extraction import listed_captures, load_indices
from analysis.packets.filters import within
from analysis.pcap.batches import TimeRange, read_columns, spans_of
from analysis.pcap.compressed import capture_name, readable
from analysis.pcap.fields import Columns
from analysis.pcap.index import CaptureIndex
from analysis.timelines.facts import Facts
from experiments.rundir import RunDirectory
from topologies.errors import InputError


@dataclass(frozen=True, slots=True)
class Captured:
    """One capture: of a host, or of one side of a link's middle."""

    name: str
    path: Path
    host: str | None
    link: str | None
    index: CaptureIndex
    clock: Clock = REFERENCE

    @property
    def place(self) -> str:
        """What people call it by: the host, or the link and its side."""
        return self.host or self.name

    @property
    def link_types(self) -> tuple[int, ...]:
        """Of its packets; of a capture of several interfaces there may be several."""
        found = (interface.link_type for form in self.index.sections for interface in form.interfaces)
        return tuple(dict.fromkeys(found))

    def packets(self, times: TimeRange, names: Collection[str]) -> Iterator[Columns]:
        """Its packets of these times, in the order of capture, some at a time: columns of PACKETS, and
        `link_type`.
        """
        for span in spans_of(self.path, self.index, times, self.clock):
            for columns in read_columns(span, names):
                inside = within(columns["t_ns"], times)
                if inside.any():
                    yield columns if inside.all() else {n: values[inside] for n, values in columns.items()}


def captures_of(run: RunDirectory) -> list[Captured]:
    """The captures of a run that can be read, in the order in which the run lists them."""
    indices, _ = load_indices(run)
    content = run.read_run()
    clocks = read_clocks(run, content)
    listed = {readable(run.capture(Path(each["file"]).name)): each for each in listed_captures(run)}
    return [
        Captured(
            capture_name(path),
            path,
            each.get("host"),
            each.get("link"),
            indices[path],
            clock_of_capture(each, content, clocks),
        )
        for path, each in listed.items()
        if path in indices
    ]


def at_place(captures: Sequence[Captured], place: str, facts: Facts) -> list[Captured]:
    """Those of a host (by its own name or its process's), or of one side of a link, as r2-r3@r2.

    Raises InputError for another place, with those that there are.
    """
    wanted = facts.host_of.get(place, place)
    found = [capture for capture in captures if wanted in {capture.place, capture.name}]
    if not found:
        known = ", ".join(dict.fromkeys(capture.place for capture in captures))
        said = f"known are {known}" if known else "there are none in this run"
        raise InputError(f"--at {place}", None, "", f"no such place with a capture: {said}")
    return found
