"""Output of `cutset packets`: lines or objects on standard output, and their number on standard error."""

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click

from analysis.inspect.packets.filters import Filter
from analysis.inspect.packets.lines import COLUMNS, Lines, plain
from analysis.inspect.packets.transfer_reader import transfers
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import is_known_system, programs_of
from experiments.files.sanitize import printable
from experiments.records.rundir import RunDirectory

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MessageListing:
    """Prints the messages of a run. limit: the maximum number; None is all."""

    run: RunDirectory
    metadata: RunMetadata
    wanted: Filter
    limit: int | None

    def show_messages(self, *, as_json: bool) -> None:
        """Print each message as a line or as an object."""
        tally = Tally()
        if as_json:
            lines = self._liner()
            _write((json.dumps(lines.object(row)) for row in rows) for rows in self._rows(tally))
        else:
            _write(self._lines(tally))
            self._show_count(tally)

    def show_bytes(self, *, as_json: bool) -> None:
        """Print each message with its fields and bytes."""
        from analysis.inspect.packets.filters import codec_of
        from analysis.inspect.packets.lines import raw_lines, raw_object
        from analysis.inspect.packets.raw import MessageByteReader

        codec, taken = codec_of(self.run.read_run().plan), MessageByteReader(self.run)
        lines = self._liner()
        if not as_json:
            _write([[lines.header()]])
        tally = Tally()
        for rows in self._rows(tally):
            for row, raw in zip(rows, taken.read_messages(rows), strict=True):
                if as_json:
                    _write([[json.dumps(lines.object(row) | raw_object(raw, codec))]])
                else:
                    _write([[*lines.faults_until(row["t_ns"]), lines.message(row), *raw_lines(raw, codec)]])
        if not as_json:
            self._show_count(tally)

    def show_retransmissions(self, *, as_json: bool) -> None:
        """Print each retransmitted segment."""
        from analysis.inspect.packets.lines import again_header, again_line, again_object, segment
        from analysis.inspect.packets.retransmissions import retransmissions

        found = retransmissions(self.run, self.wanted, COLUMNS)
        shown = found[: self.limit]
        lines = self._liner()
        if as_json:
            _write([[json.dumps(again_object(again, lines)) for again in shown]])
            return
        _write([[again_header(lines)]])
        for again in shown:
            _write([[*lines.faults_until(again.t_ns), again_line(again, lines)]])
        more = len(shown) < len(found)
        if not more:
            _write([lines.faults_until(None)])
        segments = _number(len({segment(again) for again in shown}), "segment")
        counts = f"{_number(len(shown), 'repetition')} of {segments}"
        click.echo(counts + self._stopped(more), err=True)

    def show_routing(self, links: Sequence[str], *, as_json: bool) -> None:
        """Print each message of the gateways' routing protocol."""
        from analysis.inspect.packets.routing_messages import routing_messages

        lines, shown = self._liner(), 0
        for each in islice(routing_messages(self.run, self.metadata, self.wanted.times, links), self.limit):
            shown += 1
            if as_json:
                _write([[json.dumps(each)]])
                continue
            what = "{from:>8} -> {to:<8}  {link:<12}  {protocol:<12}  {message}".format_map(each)
            line = printable(f"{lines.time(each['t_ns'])}  {what}")
            _write([[*lines.faults_until(each["t_ns"]), line]])
        if not as_json:
            click.echo(f"{_number(shown, 'message')} of the routing protocol", err=True)

    def write_packets(self, path: Path, at: str | None) -> None:
        """Write the packets to a file, or to standard output for `-`. at: as captured at one place; None:
        all.
        """
        from analysis.inspect.packets.selection import (
            begin_capture,
            select_packets,
            write_file,
            write_packets,
        )
        from analysis.taps.opening import time_zero

        choice = select_packets(self.run, self.metadata, self.wanted, at)
        if str(path) == "-":
            written = write_packets(self.metadata, choice, begin_capture(sys.stdout.buffer, self.metadata))
        else:
            written = write_file(path, self.metadata, choice)
        if not written.packets:
            kept = "" if str(path) == "-" else f": {path} is not written"
            click.echo(f"no packet matches{kept}", err=True)
            return
        where = "standard output" if str(path) == "-" else path
        counts = f"{written.packets:,} packets of {_number(written.captures, 'capture')}"
        click.echo(f"{counts} in {where}", err=True)
        click.echo(f"run {self.metadata.run}; {time_zero(self.metadata.zero_ns)}", err=True)
        system = self.metadata.declared.name
        if str(path) != "-" and is_known_system(system) and programs_of(system) is None:
            dissector = f"{system}.lua"
            click.echo(
                f"Wireshark names its messages with: cutset dissector --system {system} -o {dissector}; "
                f"wireshark -X lua_script:{dissector} {shlex.quote(str(path))}",
                err=True,
            )

    def _lines(self, tally: "Tally") -> Iterator[list[str]]:
        lines = self._liner()
        yield [lines.header()]
        for rows in self._rows(tally, COLUMNS):
            yield [line for row in rows for line in (*lines.faults_until(row["t_ns"]), lines.message(row))]
        if not tally.more:
            yield list(lines.faults_until(None))

    def _show_count(self, tally: "Tally") -> None:
        """Print the number of messages, or why there are none, if that is known."""
        hosts = any(capture.host for capture in self.run.read_run().listed_captures)
        counts = str(tally) if hosts else "no messages: this run has no captures of hosts"
        click.echo(counts + self._stopped(tally.more), err=True)

    def _liner(self) -> Lines:
        return Lines(self.metadata, self.wanted.times, _paint if _coloured() else plain)

    def _rows(self, tally: "Tally", columns: Iterable[str] | None = None) -> Iterator[list[dict[str, Any]]]:
        """Yield the messages in pieces, up to the limit, and count them."""
        left = self.limit
        named = {} if columns is None else {"columns": tuple(columns)}
        for table in transfers(self.run, self.wanted, **named):
            rows = table.slice(0, left).to_pylist()
            tally.add(rows)
            yield rows
            if left is not None:
                tally.more = table.num_rows > left
                if tally.more:
                    return
                left -= len(rows)

    def _stopped(self, more: bool) -> str:
        return f"; stopped at --limit {self.limit}: there are more" if more else ""


@dataclass(slots=True)
class Tally:
    """The number of messages shown. more: whether the limit excluded further matches."""

    messages: int = 0
    lost: int = 0
    retransmitted: int = 0
    more: bool = False

    def add(self, rows: Iterable[Row]) -> None:
        """Count these messages."""
        for row in rows:
            self.messages += 1
            self.lost += row["fate"] == "lost"
            self.retransmitted += row["retransmitted"]

    def __str__(self) -> str:
        if not self.messages:
            return "no message matches"
        return (
            f"{_number(self.messages, 'message')}, {self.lost:,} lost, {self.retransmitted:,} retransmitted"
        )


def _write(pieces: Iterable[Iterable[str]]) -> None:
    """Write lines, and flush after each piece so that the first ones appear at once."""
    for lines in pieces:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()


def _number(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _coloured() -> bool:
    """Return whether standard output is a terminal that wants colours (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _paint(text: str, colour: str) -> str:
    return click.style(text, fg=colour)
