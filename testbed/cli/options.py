"""Options that several commands share: the experiment with its changes, and the selected messages."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from functools import partial, wraps
from inspect import cleandoc
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from experiments.records.rundir import RUNS
from testbed.campaign.nights.night_options import HISTORY
from topologies.errors import InputError
from topologies.quantities import SIZE, Quantity, QuantityError

if TYPE_CHECKING:
    from experiments.loader import ExperimentFile
    from testbed.run_selection import RunSelection

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


class TextParameter(click.ParamType[T]):
    """A parameter parsed by `parse`. If that raises, the error says that the text is not a `meaning`."""

    def __init__(self, name: str, parse: Callable[[str], T], meaning: str) -> None:
        self.name, self._parse, self._meaning = name, parse, meaning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        try:
            return self._parse(str(value))
        except (ValueError, InvalidOperation):
            self.fail(f"{value} is not a {self._meaning}", param, ctx)


class FiniteRange(click.FloatRange):
    """A number within bounds that is neither infinite nor NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        return number if isfinite(number) else self.fail(f"{value} is not finite.", param, ctx)


class QuantityParameter(click.ParamType[int | None]):
    """A quantity as users write it, in base units. none: whether `none` is taken, too. Raises InputError."""

    def __init__(self, name: str, quantity: Quantity, example: str, *, none: bool = False) -> None:
        self.name, self._quantity, self._none = name, replace(quantity, example=example), none

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if self._none and value == "none":
            return None
        try:
            return self._quantity.parse_whole(value)
        except QuantityError as error:
            raise InputError(param.opts[0] if param else self.name, None, "", str(error)) from None


SECONDS_MAX = 10**9
"""The largest time in a run or capture, about 32 years; a larger one is refused."""


def _seconds(text: str) -> Decimal:
    """Parse `19.4`, `19.4s` or `19400ms`, exactly as written."""
    text = text.strip()
    found = (
        Decimal(text.removesuffix("ms")) / 1000 if text.endswith("ms") else Decimal(text.removesuffix("s"))
    )
    if not found.is_finite() or abs(found) > SECONDS_MAX:
        raise ValueError(text)
    return found


def _interval(text: str) -> tuple[int, int]:
    """Parse `48210..48341`, `48210..`, `..48341` or `48210`; `3:17` is 17 of epoch 3."""
    from analysis.messages.label import parse_seq

    first, dots, last = text.partition("..")
    start = parse_seq(first) if first else 0
    end = (parse_seq(last) if last else SEQ_MAX) if dots else start
    if not 0 <= start <= end <= SEQ_MAX:
        raise ValueError(text)
    return start, end


def _seq(text: str) -> int:
    """Parse `48210`, or `3:17` for event 17 of epoch 3."""
    from analysis.messages.label import parse_seq

    if (found := parse_seq(text)) < 1:
        raise ValueError(text)
    return found


def _event(text: str) -> tuple[str, int]:
    """Parse `r1/17`: a stream, by its number or name, and one of its events."""
    stream, slash, seq = text.rpartition("/")
    if not (slash and stream):
        raise ValueError(text)
    return stream, _seq(seq)


def _seq_or_nth(text: str) -> int | str:
    """Parse a sequence number, or keep `+100`, the hundredth event after a fault."""
    return text if re.fullmatch(r"\+[1-9][0-9]{0,17}", text) else _seq(text)


SEQ_MAX = (1 << 63) - 1
SECONDS = TextParameter("S", _seconds, "number of seconds, as 19.4 or 200ms")
INTERVAL = TextParameter("A..B", _interval, "range of sequence numbers, as 48210..48341")
EVENT = TextParameter("STREAM/SEQ", _event, "stream and a sequence number, as r1/17")
SEQ_OR_NTH = TextParameter(
    "seq", _seq_or_nth, "sequence number, as 48210, or 3:17 in epoch 3, or +100 with --after"
)
SEQ = TextParameter("seq", _seq, "sequence number, as 48210, or 3:17 in epoch 3")
DISK_SIZE = QuantityParameter("SIZE", SIZE, "50GB")


def once(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """Return an option that may be given only once; click would silently drop the first of two values."""
    return click.option(*names, multiple=True, callback=_only_one, **settings)


def _only_one(ctx: click.Context, param: click.Parameter, values: Sequence[Any]) -> Any:
    if len(values) > 1:
        raise click.BadParameter(f"is given {len(values)} times, but takes one value", ctx, param)
    return values[0] if values else None


RUN = "RUN is a path, a name below runs/, `latest`, or an archive that `cutset export` made."


def run_argument(command: Command) -> Command:
    """Add the argument RUN, with its explanation in the help."""
    return _run_argument(click.argument("run_name", metavar="RUN"), command)


def run_arguments(metavar: str) -> Callable[[Command], Command]:
    """Return a decorator that adds RUN arguments, at least one, with their explanation in the help."""
    argument = click.argument("run_names", metavar=metavar, nargs=-1, required=True)
    return partial(_run_argument, argument)


def _run_argument(argument: Callable[[Command], Command], command: Command) -> Command:
    """Add the argument, and insert the explanation of RUN at the beginning of the help's second paragraph."""
    first, _, rest = cleandoc(command.__doc__ or "").partition("\n\n")
    command.__doc__ = f"{first}\n\n{RUN} {rest}"
    return argument(command)


_EXPERIMENT = (
    click.argument("experiment"),
    click.option(
        "--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Override a field; may be repeated."
    ),
    click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="NAME",
        help="Run this variant of the experiment, once unless --repeat is given; may be repeated.",
    ),
    click.option("--topology", help="Another topology than the experiment's: a name or a file."),
    click.option(
        "--links", type=click.Choice(["auto", "netem", "relay"]), default="auto", help="The link emulator."
    ),
    click.option("--seed", type=int, help="A seed in place of the experiment's."),
)
_MESSAGES = (
    click.option(
        "--host", "hosts", multiple=True, metavar="NAME", help="Messages sent or received by this host."
    ),
    click.option(
        "--region", "regions", multiple=True, metavar="NAME", help="Messages sent or received in this region."
    ),
    click.option(
        "--link",
        "links",
        multiple=True,
        metavar="NAME",
        help="Messages whose direct route crosses this link, as r2-r3.",
    ),
    click.option("--type", "types", multiple=True, metavar="NAME", help="Messages of this type, as EVENTS."),
    click.option(
        "--stream",
        "streams",
        multiple=True,
        metavar="STREAM",
        help="Messages of this stream: 2, s2 or its region.",
    ),
    click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="TOPIC",
        help="Messages of this topic: the first digits of its key, as 65a1fc, or a stream of it.",
    ),
    once("--seq", type=INTERVAL, help="Messages that carry or name one of these sequence numbers."),
)

system_option = once(
    "--system",
    metavar="NAME",
    help="Decode messages in captures: of this system, or a protocol of tshark, as mqtt or redis.",
)


class NewFile(click.Path):
    """A file that a command replaces. A device or pipe is refused: it would become a file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if path.exists() and not path.is_file():
            self.fail(f"{path} is not a regular file", param, ctx)
        return path


NEW_FILE = NewFile(dir_okay=False, path_type=Path)
FILE, FOLDER = click.Path(dir_okay=False, path_type=Path), click.Path(file_okay=False, path_type=Path)
out_option = click.option("--out", type=FOLDER, default=RUNS, help="The folder of runs.", show_default=True)
history_option = click.option(
    "--history", type=FOLDER, default=HISTORY, help="The folder of the history.", show_default=True
)
output_option = click.option("--output", "-o", type=FILE, help="Write to this file.")
on_option = click.option(
    "--on",
    "backend",
    metavar="PLACE",
    help="local (real processes), simulator (virtual time), or an inventory of machines (a YAML file)."
    "  [default: as the experiment says]",
)
repeat_option = click.option("--repeat", type=click.IntRange(1, 1000), help="Number of runs.")
no_analyze_option = click.option(
    "--no-analyze", is_flag=True, help="Only run; `cutset analyze` can analyse it later."
)


def json_format(what: str) -> Callable[[Command], Command]:
    """Return the option `--format text|json`, which sets `as_json`. what: describes the JSON in the help."""
    return click.option(
        "--format",
        "as_json",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        callback=lambda _context, _option, value: value == "json",
        help=f"text, or json: {what}.",
    )


@dataclass(frozen=True, slots=True)
class ExperimentArguments:
    """The experiment that a user names, and the options that change it."""

    experiment: str
    overrides: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    topology: str | None = None
    links: str = "auto"
    seed: int | None = None

    @property
    def settings(self) -> list[str]:
        """--set, --topology and --variant as overrides of the experiment's fields."""
        found = [*self.overrides, *([f"topology={self.topology}"] if self.topology else [])]
        if len(self.variants) == 1:
            found += [f"variant={json.dumps(self.variants[0])}", "repeat=null"]
        elif self.variants:
            found.append(f"variant={json.dumps(self.variants)}")
        return found

    def read(self, left_out: Sequence[str] = ()) -> "ExperimentFile":
        """Return the experiment with its overrides. Raises InputError."""
        from experiments.loader import read_experiment

        return read_experiment(self.experiment, self.settings, left_out)

    def select(
        self, backend: str | None = None, repeat: int | None = None, left_out: Sequence[str] = ()
    ) -> "RunSelection":
        """Return the runs of the experiment that the options select. Raises InputError."""
        from testbed.campaign.backend_selection import check_backend
        from testbed.run_selection import RunSelection

        if backend is not None:
            check_backend(backend)
        file = self.read(left_out)
        return RunSelection.from_options(
            file, backend=backend, links=self.links, seed=self.seed, repeat=repeat
        )


def experiment_options(command: Command) -> Command:
    """Add EXPERIMENT, --set, --variant, --topology, --links and --seed; the command gets them as `given`."""

    @wraps(command)
    def with_arguments(**options: Any) -> Any:
        names = [field.name for field in fields(ExperimentArguments)]
        given = ExperimentArguments(**{name: options.pop(name) for name in names})
        return command(given=given, **options)

    return with_options(_EXPERIMENT, cast("Command", with_arguments))


def message_options(command: Command) -> Command:
    """Add --host, --region, --link, --type, --stream, --topic and --seq to a command."""
    return with_options(_MESSAGES, command)


def with_options(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    """Return the command with these options, in their order in its help."""
    for option in reversed(options):
        command = option(command)
    return command
