"""`cutset nightly`: a suite of experiments into a history, now or every night."""

from datetime import date, datetime
from typing import Any

import click
from click.exceptions import NoSuchCommand

from testbed.campaign.night_options import NightOptions
from testbed.cli.nightly_install import install
from testbed.cli.nightly_options import night_options


class SuiteOrCommand(click.Group):
    """`cutset nightly SUITE` is `cutset nightly run SUITE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Whatever names no command belongs to `run`, unless it is nearly a command's name and no suite's."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            self._refuse_mistyped_command(ctx, args[0])
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def _refuse_mistyped_command(self, ctx: click.Context, word: str) -> None:
        mistyped = NoSuchCommand(word, possibilities=self.commands, ctx=ctx)
        if not mistyped.possibilities or word.startswith("-") or "/" in word:
            return
        from experiments.suite import suite_names

        if word not in suite_names():
            raise mistyped


class Night(click.ParamType[date]):
    """A date: `2026-11-21`."""

    name = "DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        try:
            return datetime.strptime(str(value), "%Y-%m-%d").date()  # noqa: DTZ007 (a date has no zone)
        except ValueError:
            self.fail(f"{value} is no date, as 2026-11-21", param, ctx)


class Wait(click.ParamType[float]):
    """A duration, as 30min or 12h; in seconds."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from topologies.quantities import QuantityError, parse_duration_us

        try:
            return parse_duration_us(value, such_as="2h") / 1e6
        except QuantityError as error:
            self.fail(str(error), param, ctx)


@click.group(name="nightly", cls=SuiteOrCommand, subcommand_metavar="SUITE [OPTIONS]  |  install SUITE")
def command() -> None:
    """Run a suite of experiments, keep its history, and fail if something got worse.

    \b
    cutset nightly quick                 run a suite now; `cutset nightly run --help` has the options
    cutset nightly quick --resume        go on with a night after a crash, a reboot or Ctrl-C
    cutset nightly install quick         let it run every night
    """


@command.command(name="run", short_help="Run SUITE now.")
@click.argument("suite")
@click.option("--resume", is_flag=True, help="Go on with a night that did not come to its end.")
@click.option("--date", "night", type=Night(), help="Of the night; seeds follow from it.  [default: today]")
@click.option("--wait", "wait_s", type=Wait(), default="0s", help="So long for another night to be over.")
@click.option("--dry", is_flag=True, help="Only show what would run.")
@night_options
def run(suite: str, resume: bool, night: date | None, wait_s: float, dry: bool, **options: Any) -> int:
    """Run SUITE, a name or a YAML file: one experiment after another, within its time.

    Each run is analysed, has a report and goes into the history. In the end the night is held against those
    before it, and a page for the morning is written. Exit codes: 0 fine, 1 something failed or got worse, 2
    bad input, 3 the machine could not do its part or another night is on, 130 interrupted.
    """
    from testbed.campaign.night_run import Asked, run_night, show_dry

    asked = Asked(suite, night, resume, wait_s, NightOptions(**options))
    if dry:
        return show_dry(asked)
    return run_night(asked)


command.add_command(install)
