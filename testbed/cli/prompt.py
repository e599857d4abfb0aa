"""`python -m testbed.cli.prompt`: the prompt's process inside the sandbox, started by the runner.

It is among the commands because its command `packets` accepts the filters of `cutset packets` that make sense
during a run, and prints the same lines: the messages of the last seconds.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.records.rundir import RunDirectory
from testbed.cli.options import SECONDS, message_options
from testbed.errors import TestbedError
from testbed.sandbox.channel import SandboxChannel
from testbed.shell.prompt import RunnerClient, ShellPrompt, ended_by_signals

if TYPE_CHECKING:
    from analysis.inspect.packets.filters import Filter
    from analysis.live.recent.recent_messages import RecentTransfers

LAST_S = Decimal(2)
LIMIT = 30
NICE = 10
LOOK_S = 0.05
Say = Callable[[str], None]


@click.command(name="packets", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--last", "last_s", type=SECONDS, default=LAST_S, show_default=True, help="The time range in seconds."
)
@message_options
@click.option(
    "--lost", is_flag=True, help="Messages sent at least a second ago that did not arrive completely."
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=LIMIT,
    show_default=True,
    help="The number of newest messages shown.",
)
def _packets(**asked: Any) -> None:
    """Show the messages of the last seconds.

    Messages of the last second may be missing, because the kernel hands packets over in blocks. Messages
    whose beginning is not in the newest parts of the captures are left out. A message that was sent within
    the last second and has not been seen at the receiver is `unseen`. For more, leave and use `cutset
    packets`.
    """


class RecentPackets:
    """The prompt's command `packets`."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def __call__(self, arguments: Sequence[str], say: Say) -> None:
        """Show the requested messages. Raises TestbedError if that is not possible."""
        from analysis.errors import AnalysisError
        from topologies.errors import InputError

        try:
            asked = _packets.make_context("packets", list(arguments)).params
            lines = _aside(lambda: list(self._lines(asked)))
        except click.exceptions.Exit:  # --help
            return
        except click.NoSuchOption as error:
            if error.option_name not in _only_the_commands():
                raise TestbedError(error.format_message()) from error
            raise TestbedError(f"{error.option_name} is for `cutset packets`, after leaving") from error
        except click.ClickException as error:
            raise TestbedError(error.format_message()) from error
        except (AnalysisError, InputError) as error:
            raise TestbedError(str(error)) from error
        for line in lines:
            say(line)

    def _lines(self, asked: dict[str, Any]) -> Iterator[str]:
        from analysis.errors import check_messages
        from analysis.inspect.packets.filters import Query, codec_of, make_filter
        from analysis.inspect.packets.lines import Lines
        from analysis.live.recent.recent_messages import recent_transfers
        from analysis.messages.searched import messages_of
        from analysis.timelines.run_metadata import read_metadata

        record = self._run.read_run()
        metadata, codec = read_metadata(record), codec_of(record.plan)
        names = ("hosts", "regions", "links", "types", "streams", "topics", "seq", "lost")
        wanted = make_filter(Query(**{name: asked[name] for name in names}), metadata, codec.by_name)
        from_ns = time.time_ns() - round(asked["last_s"] * 10**9)
        check_messages(self._run)
        sought = messages_of(record.plan) or codec
        found = recent_transfers(self._run, record.plan, sought, from_ns, _concerned(wanted))
        rows = found.rows.combine_chunks()
        if rows.num_rows:
            rows = rows.filter(wanted.mask(rows.to_batches()[0]))
        shown = rows.slice(max(0, rows.num_rows - asked["limit"]))
        lines = Lines(metadata, wanted.times)
        if shown.num_rows:
            yield lines.header()
        for row in shown.to_pylist():
            yield lines.message(row)
        yield _summed_up(found, rows.num_rows, shown.num_rows, asked["last_s"], metadata.zero_ns)


def _only_the_commands() -> set[str]:
    """Return the options of `cutset packets` that the prompt's command does not have."""
    from testbed.cli.look.packets import command

    return _options(command) - _options(_packets)


def _options(command: click.Command) -> set[str]:
    return {name for option in command.params if isinstance(option, click.Option) for name in option.opts}


def _concerned(wanted: "Filter") -> frozenset[str] | None:
    """Return hosts such that each wanted message was sent or received by one; None: all hosts."""
    if wanted.pairs is not None:
        return frozenset(name for pair in wanted.pairs for name in pair)
    return wanted.ends[0] if wanted.ends else None


def _aside(work: Callable[[], list[str]]) -> list[str]:
    """Do this work in a thread with low priority, so that nodes keep the processors. Ctrl-C abandons it."""
    done: list[list[str]] = []
    broke: list[BaseException] = []

    def run_with_low_priority() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)  # of this thread only (setpriority(2), "C library")
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below
            broke.append(error)

    thread = threading.Thread(target=run_with_low_priority, name="packets", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
    if broke:
        raise broke[0]
    return done[0]


def _summed_up(found: "RecentTransfers", matching: int, shown: int, last_s: Decimal, zero_ns: int) -> str:
    if found.seen_until_ns is None:
        return "the captures have no packets yet"
    some = f"the newest {shown} of {matching:,}" if shown < matching else f"{matching:,}"
    until_s = (found.seen_until_ns - zero_ns) / 1e9
    return f"{some} messages of the last {last_s} s; the captures go to {until_s:.3f} s"


def main() -> int:
    """Show the prompt until the user leaves it; return the exit code."""
    from testbed.network.mininet_nodes import attached_network

    runner = RunnerClient(SandboxChannel.inherited())
    with ended_by_signals():
        opening = runner.opening()
        run = RunDirectory(Path(opening["run"]))
        plan = run.read_run().plan
        net = attached_network(plan, opening["pids"])
        try:
            ShellPrompt(net, plan, runner, RecentPackets(run), sys.stdin).talk()
        finally:
            for host in net.hosts:
                host.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
