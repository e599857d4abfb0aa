"""Installation of a nightly suite: writes the units of systemd and enables them."""

import getpass
import os
import shutil
import subprocess
import sys
from datetime import time
from pathlib import Path

import click

from experiments.files.whole_files import write_whole
from experiments.suite import FOLDER, read_suite
from testbed.campaign.nights.night_options import NightOptions
from testbed.errors import MachineError
from testbed.nightly.planning import check_jobs
from testbed.nightly.units import WAIT_H, NightSchedule, units

SYSTEM_UNITS = Path("/etc/systemd/system")
SYSTEMCTL_TIMEOUT_S = 60.0


def schedule(suite: str, at: time, options: NightOptions, *, system: bool) -> NightSchedule:
    """Return when and how a suite runs. Raises InputError if nights with these options could not start."""
    file = read_suite(suite)
    check_jobs(options.jobs, file)
    named = suite if (FOLDER / f"{suite}.yaml").is_file() else str(Path(suite).absolute())
    return NightSchedule(
        suite=file.suite.suite,
        command=[_cutset(), "nightly", "run", named, "--wait", f"{WAIT_H}h", *options.words(absolute=True)],
        folder=Path.cwd(),
        path=os.environ.get("PATH", os.defpath),
        hour=at.hour,
        minute=at.minute,
        budget_s=file.suite.budget_us / 1e6,
        user=_owner(Path.cwd()) if system else None,
    )


def install_units(night: NightSchedule, *, user: bool) -> None:
    """Write the units of a timer and enable them. user: units of this user, not of the machine.

    Raises MachineError with the steps that remain.
    """
    folder = _user_units() if user else SYSTEM_UNITS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in units(night).items():
            write_whole(folder / name, text)
            click.echo(str(folder / name))
    except OSError as error:
        raise MachineError(
            f"cannot write {folder}: {error.strerror}: install units of your user with --user,"
        ) from error
    systemctl = ["systemctl", *(["--user"] if user else [])]
    for arguments in (["daemon-reload"], ["enable", "--now", night.timer], ["enable", night.resume]):
        _call([*systemctl, *arguments])
    click.echo(f"{night.suite} runs every night at {night.hour:02}:{night.minute:02}")
    if user:
        click.echo(
            f"only while you are logged in, unless you run: loginctl enable-linger {getpass.getuser()}"
        )


def _call(command: list[str]) -> None:
    words = " ".join(command)
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=SYSTEMCTL_TIMEOUT_S)
    except OSError as error:
        raise MachineError(f"the units are written, but {words} cannot run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise MachineError(f"the units are written, but {words} does not end") from error
    except subprocess.CalledProcessError as error:
        errors = " ".join(error.stderr.split())
        raise MachineError(
            f"the units are written, but {words} failed: {errors}: use --cron without systemd"
        ) from error


def _user_units() -> Path:
    """Return the folder of the user's units; see systemd.unit(5)."""
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "systemd" / "user"


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:  # the owner has no name on this machine
        return getpass.getuser()


def _cutset() -> str:
    """Return the command as an absolute path that stays valid."""
    beside = Path(sys.executable).with_name("cutset")
    return str(beside) if beside.is_file() else shutil.which("cutset") or "cutset"
