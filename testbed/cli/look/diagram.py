"""`cutset diagram`: the messages between hosts around a moment of a run, as a space-time diagram (SVG)."""

import shlex
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli.options import NEW_FILE, SECONDS, FiniteRange, once, run_argument

if TYPE_CHECKING:
    from analysis.pages.diagram.message_selection import DiagramQuery
    from analysis.pages.diagram.scene_builder import TimeWindow
    from analysis.pages.report.run_reader import AnalysedRun
    from experiments.records.rundir import RunDirectory


_SPAN = "Seconds before and after it.  [default: until all streams flow again]"


@click.command(name="diagram")
@run_argument
@once("--from", "from_s", type=SECONDS, help="Seconds since time 0.")
@once("--to", "to_s", type=SECONDS, help="Seconds since time 0.")
@click.option("--around", metavar="FAULT", help="The moment of a fault, with the affected messages.")
@click.option("--span", "span_s", type=FiniteRange(min=0.001), metavar="S", help=_SPAN)
@click.option("--host", "hosts", multiple=True, help="Messages of this host, or among several.")
@click.option("--region", "regions", multiple=True, help="Messages of this region, or among several.")
@click.option("--type", "types", multiple=True, help="Messages of this type, as EVENTS; may be repeated.")
@once("--stream", metavar="STREAM", help="Messages about this stream: 2, s2 or its region.")
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    help="The file to write; without it, one in the run's figures/.",
)
def command(  # noqa: PLR0917 (click passes them by name)
    run_name: str,
    from_s: Decimal | None,
    to_s: Decimal | None,
    around: str | None,
    span_s: float | None,
    hosts: tuple[str, ...],
    regions: tuple[str, ...],
    types: tuple[str, ...],
    stream: str | None,
    output: Path | None,
) -> None:
    """Draw the messages between hosts around a moment: time runs downwards, lost messages end in a cross.

    If there are too many messages, some are left out; the picture lists them. Exit codes: 0 drawn, 2 no such
    run, moment, fault or message, or not analysed yet.
    """
    from analysis.errors import check_messages, check_packets
    from analysis.pages.diagram.drawing import diagram_svg
    from analysis.pages.diagram.scene_builder import command as command_of
    from analysis.pages.diagram.scene_builder import figure_name, make_scene
    from analysis.pages.report.run_reader import read_record
    from experiments.records.rundir import run_argument
    from testbed.cli.named_run import named_run
    from testbed.cli.output import put_text, write_text

    _check_output(output)
    run = named_run(run_name)
    check_packets(run)
    check_messages(run)
    record = read_record(run)
    moment = _moment(record, from_s, to_s, around, span_s)
    _check(run, record)
    wanted = _wanted(record, hosts, regions, types, stream)
    telling = around is not None and span_s is None
    named = run_argument(run.path)
    drawn_by = command_of(named, wanted, fault=around) if telling else command_of(named, wanted, moment)
    scene = make_scene(run, record, moment, wanted, drawn_by, around if telling else None)
    when = around if telling and around else f"{moment.from_s:.3f}-{moment.to_s:.3f}"
    path = output or run.figure(figure_name(when, wanted), "svg")
    put = put_text if output is None else write_text
    put(path, diagram_svg(scene).svg)
    for reason in scene.left_out:
        click.echo(f"left out     {reason}", err=True)
    click.echo(f"diagram      {path} ({scene.messages} messages between {len(scene.lifelines)} hosts)")


def _moment(
    record: "AnalysedRun",
    from_s: Decimal | None,
    to_s: Decimal | None,
    fault: str | None,
    span_s: float | None,
) -> "TimeWindow":
    from analysis.pages.diagram.scene_builder import TimeWindow, around

    if fault is not None and (from_s, to_s) == (None, None):
        return around(record, fault, span_s)
    if fault is not None or span_s is not None or from_s is None or to_s is None:
        raise click.UsageError("give either --from and --to, or --around (and with it --span)")
    if from_s >= to_s:
        raise click.UsageError(f"--from {from_s:g} is not before --to {to_s:g}")
    return TimeWindow(float(from_s), float(to_s))


def _wanted(
    record: "AnalysedRun",
    hosts: tuple[str, ...],
    regions: tuple[str, ...],
    types: tuple[str, ...],
    stream: str | None,
) -> "DiagramQuery":
    """Return the query, with names checked as by `cutset packets`. Raises InputError."""
    from analysis.inspect.packets.filters import Query, codec_of, make_filter
    from analysis.pages.diagram.message_selection import DiagramQuery
    from analysis.timelines.run_metadata import read_metadata

    metadata, known = read_metadata(record.run), codec_of(record.plan).by_name
    streams = () if stream is None else (stream,)
    found = make_filter(Query(hosts=hosts, types=types, streams=streams), metadata, known)
    make_filter(Query(regions=regions), metadata, known)
    return DiagramQuery(
        frozenset().union(*found.ends), frozenset(regions), found.types, next(iter(found.streams), None)
    )


def _check(run: "RunDirectory", record: "AnalysedRun") -> None:
    """Raise InputError if the run has no table of transfers."""
    from experiments.records.rundir import run_argument
    from topologies.errors import InputError

    if not run.table("transfers").is_dir():
        again = shlex.join(["cutset", "analyze", run_argument(run.path)])
        reason = f"create it with `{again}`" if record.captured else "it was run without captures"
        raise InputError(str(run.path), None, "", f"has no table of messages: {reason}")


def _check_output(path: Path | None) -> None:
    """Check the name and the directory of the output file before reading the run. Raises InputError."""
    from testbed.cli.output import check_directory
    from topologies.errors import InputError

    if path is None:
        return
    if path.suffix != ".svg":
        raise InputError(str(path), None, "--output", "should end in .svg: diagrams are SVG")
    check_directory(path)
