"""`cutset nightly install`: prints or installs what starts a suite every night."""

import getpass
import os
import shutil
import subprocess
import sys
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.campaign.night_options import NightOptions
from testbed.cli.nightly_options import night_options

if TYPE_CHECKING:
    from testbed.nightly.units import Installed

SYSTEM_UNITS = Path("/etc/systemd/system")
SYSTEMCTL_TIMEOUT_S = 60.0


class TimeOfDay(click.ParamType[time]):
    """`02:00`."""

    name = "HH:MM"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> time:
        try:
            return datetime.strptime(str(value), "%H:%M").time()  # noqa: DTZ007 (the machine's own clock)
        except ValueError:
            self.fail(f"{value} is no time of day, as 02:00", param, ctx)


@click.command(name="install", short_help="Let SUITE run every night.")
@click.argument("suite")
@click.option(
    "--at", type=TimeOfDay(), default="02:00", show_default=True, help="When, by this machine's clock."
)
@click.option("--user", "kind", flag_value="user", default=True, help="As units of yours.  [default]")
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
    """Let SUITE run every night from this folder: a systemd timer, or a line for cron.

    A second unit goes on with a night that a reboot cut off. The other options are those that the nights will
    have; see `cutset nightly run --help`.
    """
    from testbed.nightly.units import cron_lines, units

    night = _installed(suite, at, NightOptions(**options), system=kind == "system")
    if kind == "cron":
        click.echo(cron_lines(night), nl=False)
        return 0
    if only_print:
        click.echo("\n".join(f"# {name}\n{text}" for name, text in units(night).items()), nl=False)
        return 0
    _install(night, units(night), user=kind == "user")
    return 0


def _installed(suite: str, at: time, options: NightOptions, *, system: bool) -> "Installed":
    """Raises InputError if nights with these options could not start."""
    from experiments.suite import FOLDER, read_suite
    from testbed.nightly.hooks import check_hooks
    from testbed.nightly.planning import check_jobs
    from testbed.nightly.units import WAIT_H, Installed

    file = read_suite(suite)
    check_jobs(options.jobs, file)
    check_hooks((*options.hooks, *options.hooks_always))
    named = suite if (FOLDER / f"{suite}.yaml").is_file() else str(Path(suite).absolute())
    return Installed(
        suite=file.suite.suite,
        command=[_cutset(), "nightly", "run", named, "--wait", f"{WAIT_H}h", *options.words(absolute=True)],
        folder=Path.cwd(),
        path=os.environ.get("PATH", os.defpath),
        hour=at.hour,
        minute=at.minute,
        budget_s=file.suite.budget_us / 1e6,
        user=_owner(Path.cwd()) if system else None,
    )


def _install(night: "Installed", texts: dict[str, str], *, user: bool) -> None:
    """Write the units and enable them. Raises MachineError that says what is left to do."""
    from experiments.whole_files import write_whole
    from testbed.errors import MachineError

    folder = _user_units() if user else SYSTEM_UNITS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_whole(folder / name, text)
            click.echo(str(folder / name))
    except OSError as error:
        raise MachineError(
            f"cannot write {folder}: {error.strerror}: --user installs units of yours, --print shows them"
        ) from error
    systemctl = ["systemctl", *(["--user"] if user else [])]
    for arguments in (["daemon-reload"], ["enable", "--now", night.timer], ["enable", night.resume]):
        _call([*systemctl, *arguments])
    click.echo(f"{night.suite} runs every night at {night.hour:02}:{night.minute:02}")
    if user:
        click.echo(f"while you are logged in; always, after: loginctl enable-linger {getpass.getuser()}")


def _call(command: list[str]) -> None:
    from testbed.errors import MachineError

    words = " ".join(command)
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=SYSTEMCTL_TIMEOUT_S)
    except OSError as error:
        raise MachineError(f"the units are written, but {words} cannot run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"the units are written, but {words} does not come back") from error
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.split())
        raise MachineError(
            f"the units are written, but {words} failed: {said}: --cron does without systemd"
        ) from error


def _user_units() -> Path:
    """See systemd.unit(5)."""
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "systemd" / "user"


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:  # of nobody that this machine knows
        return getpass.getuser()


def _cutset() -> str:
    """The command, by an absolute path that stays."""
    beside = Path(sys.executable).with_name("cutset")
    return str(beside) if beside.is_file() else shutil.which("cutset") or "cutset"
