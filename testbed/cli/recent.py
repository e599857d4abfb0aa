"""`packets` at the prompt of `cutset shell`: what messages crossed in the last seconds.

Understands the filters of `cutset packets` that make sense while a run goes on, and shows the same lines.
"""

import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from experiments.rundir import RunDirectory
from testbed.cli.packets import Interval, Seconds
from testbed.errors import TestbedError

if TYPE_CHECKING:
    from analysis.recent.looking import Look

LAST_S = Decimal(3)
LIMIT = 30
Say = Callable[[str], None]


@click.command(name="packets", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--last", "last_s", type=Seconds(), default=LAST_S, show_default=True, help="Of so many seconds."
)
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="Sent or got by this host.")
@click.option("--region", "regions", multiple=True, metavar="NAME", help="Sent or got in this region.")
@click.option(
    "--link", "links", multiple=True, metavar="NAME", help="Whose direct way crosses this link, as r2-r3."
)
@click.option("--type", "types", multiple=True, metavar="NAME", help="Of this type, as EVENTS.")
@click.option("--stream", "streams", multiple=True, type=int, metavar="N", help="Of this stream.")
@click.option("--seq", type=Interval(), help="That carry or name one of these sequence numbers.")
@click.option("--lost", is_flag=True, help="That left a second ago or longer and never were whole.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True, help="The newest so many.")
def _packets(**asked: Any) -> None:
    """Show what messages crossed in the last seconds.

    What came in the last second may be missing, as the kernel hands packets over in blocks. Messages whose
    beginning is not in the newest parts of the captures are left out. A message that left within the last
    second and was not seen to come is `unseen`. For more, leave and use `cutset packets`.
    """


class Recent:
    """The word `packets`."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def __call__(self, arguments: Sequence[str], say: Say) -> None:
        """Show what was asked for. Raises TestbedError for what cannot be."""
        from analysis.errors import AnalysisError
        from topologies.errors import InputError

        try:
            asked = _packets.make_context("packets", list(arguments)).params
            self._show(asked, say)
        except click.exceptions.Exit:  # --help
            return
        except click.ClickException as error:
            raise TestbedError(error.format_message()) from error
        except (AnalysisError, InputError) as error:
            raise TestbedError(str(error)) from error

    def _show(self, asked: dict[str, Any], say: Say) -> None:
        from analysis.packets.filters import Asked, codec_of, make_filter
        from analysis.packets.lines import Lines
        from analysis.recent.looking import look
        from analysis.timelines.facts import read_facts

        content = self._run.read_run()
        facts, codec = read_facts(content), codec_of(content)
        names = ("hosts", "regions", "links", "types", "streams", "seq", "lost")
        wanted = make_filter(Asked(**{name: asked[name] for name in names}), facts, codec.by_name)
        now_ns = time.time_ns()
        found = look(self._run, content["plan"], codec, now_ns - round(asked["last_s"] * 10**9))
        rows = found.rows.combine_chunks()
        if rows.num_rows:
            rows = rows.filter(wanted.mask(rows.to_batches()[0]))
        shown = rows.slice(max(0, rows.num_rows - asked["limit"]))
        lines = Lines(facts, wanted.times)
        if shown.num_rows:
            say(lines.header())
        for row in shown.to_pylist():
            say(lines.message(row))
        say(_summed_up(found, rows.num_rows, shown.num_rows, asked, now_ns))


def _summed_up(found: "Look", matching: int, shown: int, asked: dict[str, Any], now_ns: int) -> str:
    if found.seen_until_ns is None:
        return "the captures hold nothing yet"
    ago_s = (now_ns - found.seen_until_ns) / 1e9
    some = f"the newest {shown} of {matching:,}" if shown < matching else f"{matching:,}"
    return f"{some} messages of the last {asked['last_s']} s; the captures are {max(0.0, ago_s):.1f} s behind"
