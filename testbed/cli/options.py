"""Options that several commands share: which experiment, changed how, and which messages."""

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from experiments.rundir import RUNS
from testbed.campaign.night_options import HISTORY

if TYPE_CHECKING:
    from experiments.loader import ExperimentFile

Command = TypeVar("Command", bound=Callable[..., Any])


class Seconds(click.ParamType[Decimal]):
    """Seconds, exactly as they are written: `19.4`, `19.4s` or `19400ms`."""

    name = "S"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        text, milliseconds = str(value).strip(), str(value).strip().endswith("ms")
        number = text.removesuffix("ms") if milliseconds else text.removesuffix("s")
        try:
            found = Decimal(number) / 1000 if milliseconds else Decimal(number)
        except InvalidOperation:
            found = Decimal("nan")
        if not found.is_finite():
            self.fail(f"{value} is no number of seconds, as 19.4 or 200ms", param, ctx)
        return found


class Interval(click.ParamType[tuple[int, int]]):
    """Sequence numbers: `48210..48341`, `48210..`, `..48341` or `48210`; `3:17` is 17 of epoch 3."""

    name = "A..B"
    last = (1 << 63) - 1

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        from analysis.messages.label import parsed

        first, dots, last = value.partition("..")
        try:
            start = parsed(first) if first else 0
            found = start, (parsed(last) if last else self.last) if dots else start
        except ValueError:
            found = (1, 0)
        if not 0 <= found[0] <= found[1] <= self.last:
            self.fail(f"{value} is no range of sequence numbers, as 48210..48341", param, ctx)
        return found


class Seq(click.ParamType[int]):
    """A sequence number: `48210`, or `3:17` for event 17 of epoch 3."""

    name = "seq"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from analysis.messages.label import parsed

        try:
            found = parsed(str(value))
        except ValueError:
            found = 0
        if found < 1:
            self.fail(f"{value} is no sequence number, as 48210, or 3:17 in epoch 3", param, ctx)
        return found


def once(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """An option with one value, refused where it is given twice: of two values click drops one silently."""
    return click.option(*names, multiple=True, callback=_only_one, **settings)


def _only_one(ctx: click.Context, param: click.Parameter, values: Sequence[Any]) -> Any:
    if len(values) > 1:
        raise click.BadParameter(f"is given {len(values)} times, and has one value", ctx, param)
    return values[0] if values else None


RUN = "RUN is a path, a name below runs/, `latest`, or an archive that `cutset export` made."


def run_argument(command: Command) -> Command:
    """RUN, and in the help what that is."""
    return _run_argument(click.argument("run_name", metavar="RUN"), command)


def run_arguments(metavar: str) -> Callable[[Command], Command]:
    """Several RUNs, at least one, and in the help what each is."""
    argument = click.argument("run_names", metavar=metavar, nargs=-1, required=True)
    return partial(_run_argument, argument)


def _run_argument(argument: Callable[[Command], Command], command: Command) -> Command:
    """What RUN is begins the help's second paragraph."""
    first, _, rest = cleandoc(command.__doc__ or "").partition("\n\n")
    command.__doc__ = f"{first}\n\n{RUN} {rest}"
    return argument(command)


_EXPERIMENT = (
    click.argument("experiment"),
    click.option(
        "--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Override a field; may be repeated."
    ),
    click.option("--topology", help="Another topology than the experiment's: a name or a file."),
    click.option(
        "--links", type=click.Choice(["auto", "netem", "relay"]), default="auto", help="What carries links."
    ),
    click.option("--seed", type=int, help="Another seed than the experiment's."),
)
_MESSAGES = (
    click.option("--host", "hosts", multiple=True, metavar="NAME", help="Sent or got by this host."),
    click.option("--region", "regions", multiple=True, metavar="NAME", help="Sent or got in this region."),
    click.option(
        "--link",
        "links",
        multiple=True,
        metavar="NAME",
        help="Whose direct way crosses this link, as r2-r3.",
    ),
    click.option("--type", "types", multiple=True, metavar="NAME", help="Of this type, as EVENTS."),
    click.option(
        "--stream", "streams", multiple=True, metavar="STREAM", help="Of this stream: 2, s2 or its region."
    ),
    once("--seq", type=Interval(), help="That carry or name one of these sequence numbers."),
)

out_option = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=RUNS,
    help="Where runs are kept.",
    show_default=True,
)
history_option = click.option(
    "--history",
    type=click.Path(file_okay=False, path_type=Path),
    default=HISTORY,
    help="Where the history is kept.",
    show_default=True,
)
no_analyze_option = click.option(
    "--no-analyze", is_flag=True, help="Only run; `cutset analyze` can follow at any time."
)


def experiment_options(command: Command) -> Command:
    """EXPERIMENT, --set, --topology, --links and --seed."""
    return _with(_EXPERIMENT, command)


def message_options(command: Command) -> Command:
    """--host, --region, --link, --type, --stream and --seq."""
    return _with(_MESSAGES, command)


def _with(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def all_overrides(overrides: Sequence[str], topology: str | None) -> list[str]:
    """What was overridden, --topology included."""
    return [*overrides, *([f"topology={topology}"] if topology else [])]


def read_chosen(experiment: str, overrides: Sequence[str], topology: str | None) -> "ExperimentFile":
    """The experiment with its overrides. Raises InputError."""
    from experiments.loader import read_experiment

    return read_experiment(experiment, all_overrides(overrides, topology))
