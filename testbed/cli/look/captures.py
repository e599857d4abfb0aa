"""`cutset captures`: a page about captures without a run."""

import tempfile
from decimal import Decimal
from pathlib import Path

import click

from testbed.cli.options import NEW_FILE, SECONDS, FiniteRange, once, system_option


@click.command(name="captures")
@click.argument("names", metavar="CAPTURE...", nargs=-1, required=True)
@once("--from", "from_s", type=SECONDS, help="Only packets from this time after the first one.")
@once("--to", "to_s", type=SECONDS, help="Only packets before this time after the first one.")
@once(
    "--silence",
    "silence_s",
    type=FiniteRange(min=0.001),
    metavar="S",
    help="The least silence that is shown.  [default: 1]",
)
@system_option
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    default=Path("captures.html"),
    show_default=True,
    help="The file of the page.",
)
def command(
    names: tuple[str, ...],
    *,
    from_s: Decimal | None,
    to_s: Decimal | None,
    silence_s: float | None,
    system: str | None,
    output: Path,
) -> None:
    """Write a page about captures of anyone: who talks to whom, silences, resets, retransmissions, delays.

    CAPTURE is a pcap or pcapng file, a folder of them, a pattern, a URL of these, or `-` for standard input.
    Captures of several places on one path are compared: which packets were lost between them, how long they
    took, and how far the clocks differ. docs/captures.md explains the words. Exit codes: 0 written, 2 bad
    input, 3 this machine cannot.
    """
    from analysis.arrow_alone import keep_pandas_out

    keep_pandas_out()
    from analysis.pages.taps.page import write_page
    from analysis.pages.taps.spooling import spooled
    from experiments.files.scratch import scratch
    from testbed.cli.captures import opened_captures
    from testbed.cli.output import check_directory

    check_directory(output)
    with (
        opened_captures(names, from_s, to_s, silence_s, system) as [case],
        scratch("cutset-page-", Path(tempfile.gettempdir())) as folder,
        spooled(case.tables, folder) as asked,
    ):
        write_page(asked, output)
    click.echo(f"page         {output} ({output.stat().st_size / 1e6:.1f} MB)")
