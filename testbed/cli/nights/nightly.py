"""`cutset nightly`: runs a suite of experiments into a history, now or every night.

`cutset nightly install` prints or installs the units that start a suite every night.
"""

from datetime import date, datetime, time
from typing import Any

import click
from click.exceptions import NoSuchCommand

from testbed.campaign.nights.night_options import NightOptions
from testbed.cli.options import (
    DISK_SIZE,
    FOLDER,
    Command,
    QuantityParameter,
    TextParameter,
    history_option,
    out_option,
    with_options,
)
from topologies.quantities import DURATION

_OPTIONS = (
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        default=1,
        show_default=True,
        help="Number of parallel runs in virtual time; a run of real processes is always alone.",
    ),
    out_option,
    history_option,
    click.option(
        "--site",
        type=FOLDER,
        help="The folder of the morning page.  [default: site/ in the history]",
    ),
    click.option(
        "--keep",
        "keep_bytes",
        type=DISK_SIZE,
        help="Disk budget, as 50GB: old captures are removed first; numbers are kept.",
    ),
    click.option(
        "--hook",
        "hooks",
        multiple=True,
        metavar="COMMAND",
        help="A command to call if a night failed; it gets JSON on standard input. May be repeated.",
    ),
    click.option(
        "--hook-always",
        "hooks_always",
        multiple=True,
        metavar="COMMAND",
        help="The same, after every night.",
    ),
)


def night_options(command: Command) -> Command:
    """Add --jobs, --out, --history, --site, --keep, --hook and --hook-always to a command."""
    return with_options(_OPTIONS, command)


NIGHT = TextParameter(
    "DATE",
    lambda text: datetime.strptime(text, "%Y-%m-%d").date(),  # noqa: DTZ007 (a date has no zone)
    "date, as 2026-11-21",
)
TIME_OF_DAY = TextParameter(
    "HH:MM",
    lambda text: datetime.strptime(text, "%H:%M").time(),  # noqa: DTZ007 (the machine's own clock)
    "time of day, as 02:00",
)


@click.command(name="install", short_help="Run SUITE every night.")
@click.argument("suite")
@click.option(
    "--at",
    type=TIME_OF_DAY,
    default="02:00",
    show_default=True,
    help="The time by this machine's clock.",
)
@click.option("--user", "kind", flag_value="user", default=True, help="As units of your user.  [default]")
@click.option("--system", "kind", flag_value="system", help="As units of the machine; needs root.")
@click.option("--cron", "kind", flag_value="cron", help="Print lines for `crontab -e` instead.")
@click.option("--print", "only_print", is_flag=True, help="Print the units, and install nothing.")
@night_options
def install(
    suite: str,
    at: time,
    kind: str,
    only_print: bool,
    **options: Any,
) -> int:
    """Run SUITE every night from this folder, by a systemd timer or a line for cron.

    A second unit resumes a night that was interrupted by a reboot. The other options apply to the nights; see
    `cutset nightly run --help`.
    """
    from testbed.campaign.nights.night_installation import install_units, schedule
    from testbed.nightly.units import cron_lines, units

    night = schedule(suite, at, NightOptions(**options), system=kind == "system")
    if kind == "cron":
        click.echo(cron_lines(night), nl=False)
        return 0
    if only_print:
        click.echo("\n".join(f"# {name}\n{text}" for name, text in units(night).items()), nl=False)
        return 0
    install_units(night, user=kind == "user")
    return 0


class SuiteOrCommand(click.Group):
    """A group that takes `cutset nightly SUITE` for `cutset nightly run SUITE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `run` before an unknown word, unless it is a mistyped command."""
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


@click.group(name="nightly", cls=SuiteOrCommand, subcommand_metavar="SUITE [OPTIONS]  |  install SUITE")
def command() -> None:
    """Run a suite of experiments, keep its history, and fail if something got worse.

    \b
    cutset nightly quick                 run a suite now; `cutset nightly run --help` has the options
    cutset nightly quick --resume        resume a night after a crash, a reboot or Ctrl-C
    cutset nightly install quick         run it every night
    """


@command.command(name="run", short_help="Run SUITE now.")
@click.argument("suite")
@click.option("--resume", is_flag=True, help="Resume an interrupted night.")
@click.option(
    "--date", "night", type=NIGHT, help="The date of the night, which determines the seeds.  [default: today]"
)
@click.option(
    "--wait",
    "wait_us",
    type=QuantityParameter("DURATION", DURATION, "2h"),
    default="0s",
    help="How long to wait for another night to end.",
)
@click.option("--dry", is_flag=True, help="Only show what would run.")
@night_options
def run(suite: str, resume: bool, night: date | None, wait_us: int, dry: bool, **options: Any) -> int:
    """Run SUITE, a name or a YAML file: one experiment after another, within its budget.

    Each run is analysed, gets a report and is added to the history. At the end the night is compared with
    earlier ones, and a page for the morning is written. Exit codes: 0 fine, 1 a run failed or a metric got
    worse, 2 bad input, 3 the machine failed or another night is running, 130 interrupted.
    """
    from testbed.campaign.nights.night_run import NightRequest, run_night, show_dry

    asked = NightRequest(suite, night, resume, wait_us / 1e6, NightOptions(**options))
    if dry:
        return show_dry(asked)
    return run_night(asked)


command.add_command(install)
