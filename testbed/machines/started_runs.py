"""The inventories of runs that this user started here and whose files have not all arrived.

They are recorded in the user's own folder (XDG Base Directory Specification), one file per run, until all
files have arrived. A run directory may come from another user, so its machines are not trusted for a login.
"""

import contextlib
import os
from pathlib import Path

from experiments.files.plain_name import plain_name
from experiments.records.json_files import read_json, write_json
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError


def record_started(run: RunDirectory, inventory: Path) -> None:
    """Record the inventory of a run that starts now.

    If it cannot be written, `cutset fetch` needs --on.
    """
    with contextlib.suppress(OSError, RuntimeError):  # the user has no home, or cannot write there
        path = _note(run)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(path, {"inventory": str(inventory.absolute())})


def inventory_of(run: RunDirectory) -> Path | None:
    """Return the inventory's file if the run was started here, else None.

    Raises InputError if the record is damaged.
    """
    try:
        path = _note(run)
        if not path.is_file():
            return None
    except (OSError, RuntimeError):
        return None
    inventory = read_json(path).get("inventory")
    if not isinstance(inventory, str):
        raise InputError(str(path), None, "inventory", "should name a file")
    return Path(inventory)


def forget(run: RunDirectory) -> None:
    """Remove the record of a run whose files have all arrived. Idempotent."""
    with contextlib.suppress(OSError, RuntimeError):  # leaves a small file, which is harmless
        _note(run).unlink(missing_ok=True)


def _note(run: RunDirectory) -> Path:
    """Return the path of a run's record. Raises RuntimeError if this user has no home."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    folder = given if given.is_absolute() else Path.home() / ".local/state"
    return folder / "cutset/runs" / f"{plain_name(run.full_name, run.path)}.json"
