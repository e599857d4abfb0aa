"""`cutset packets` on captures in place of a run."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from analysis.inspect.packets.captured import PacketQuery
    from analysis.sql.cases import CapturesCase

_OF_RUNS = ("around", "span_s", "regions", "links", "streams", "topics", "seq", "region_of", "raw")
"""Options that need a plan."""


def show_captured(names: Sequence[str], asked: Mapping[str, Any], *, as_json: bool) -> None:
    """Show the packets of captures. Raises InputError, CaptureError."""
    from analysis.inspect.packets.captured import PacketQuery, check, messages, packets
    from testbed.cli.captures import opened_captures
    from testbed.cli.output import reader_may_leave

    for name in _OF_RUNS:
        if asked[name]:
            option = name.removesuffix("_s").removesuffix("s").replace("_", "-")
            raise click.UsageError(
                f"--{option} is for runs: captures take --from, --to, --host, --port and --type"
            )
    query = PacketQuery(
        asked["hosts"],
        asked["ports"],
        tuple(each.upper() for each in asked["types"]),
        asked["lost"],
        asked["retransmissions"],
        asked["at"],
        asked["limit"],
    )
    with (
        opened_captures(names, asked["from_s"], asked["to_s"], system=asked["system"]) as [case],
        reader_may_leave(),
    ):
        check(query, case)
        if asked["system"]:
            _print(query, case, messages(query, case), as_json=as_json)
        elif asked["pcap"]:
            if query.types or query.lost or query.retransmitted:
                raise click.UsageError("--pcap of captures goes with --from, --to, --host, --port and --at")
            _write(query, case, asked["pcap"])
        else:
            _print(query, case, packets(query, case), as_json=as_json)


def _print(
    query: "PacketQuery", case: "CapturesCase", found: "Iterable[list[dict[str, Any]]]", *, as_json: bool
) -> None:
    from analysis.inspect.packets.captured import line

    count, zero_ns = 0, case.zero_ns
    for rows in found:
        shown = rows if query.limit is None else rows[: max(0, query.limit - count)]
        lines = (json.dumps(row) if as_json else line(row, zero_ns) for row in shown)
        sys.stdout.write("".join(f"{each}\n" for each in lines))
        count += len(rows)
    if as_json:
        return
    if query.limit is not None and count > query.limit:
        click.echo(f"{query.limit:,} packets; stopped at --limit {query.limit}: there are more", err=True)
    else:
        click.echo(f"{count:,} packets" if count else "no packet matches", err=True)


def _write(query: "PacketQuery", case: "CapturesCase", path: Any) -> None:
    from analysis.inspect.packets.captured import selection
    from analysis.inspect.packets.selection import begin_capture, write_file, write_packets
    from analysis.taps.opening import time_zero

    taps, choice = case.tables.compared.taps, selection(query, case)
    if str(path) == "-":
        written = write_packets(taps, choice, begin_capture(sys.stdout.buffer, taps))
    else:
        written = write_file(path, taps, choice)
    click.echo(
        f"{written.packets:,} packets of {written.captures} captures; {time_zero(taps.zero_ns)}", err=True
    )
