"""Lets a suite run every night: writes the units of systemd and enables them."""

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
from testbed.nightly.hooks import check_hooks
from testbed.nightly.planning import check_jobs
from testbed.nightly.units import WAIT_H, NightSchedule, units

SYSTEM_UNITS = Path("/etc/systemd/system")
SYSTEMCTL_TIMEOUT_S = 60.0


def schedule(suite: str, at: time, options: NightOptions, *, system: bool) -> NightSchedule:
    """When a suite is to run, and how. Raises InputError if nights with these options could not start."""
    file = read_suite(suite)
    check_jobs(options.jobs, file)
    check_hooks((*options.hooks, *options.hooks_always))
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
    """Write the units of a timer and enable them. user: of this user, not of the machine.

    Raises MachineError that says what is left to do.
    """
    folder = _user_units() if user else SYSTEM_UNITS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in units(night).items():
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
