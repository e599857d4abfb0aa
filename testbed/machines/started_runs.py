"""With which inventory this user started runs from here, as long as not all their files are here.

It stands in the user's own folder (XDG Base Directory Specification), a file for each run, until all files
have come: what a run directory says of its machines may be somebody else's, and is no reason to log in there.
"""

import contextlib
import os
from pathlib import Path

from experiments.files.plain_name import plain_name
from experiments.records.json_files import read_json, write_json
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError


def note_started(run: RunDirectory, inventory: Path) -> None:
    """Note with which inventory a run is started now.

    Where that cannot be written, `cutset fetch` needs --on.
    """
    with contextlib.suppress(OSError, RuntimeError):  # nobody's home, or not ours to write
        path = _note(run)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(path, {"inventory": str(inventory.absolute())})


def inventory_of(run: RunDirectory) -> Path | None:
    """The inventory's file, if the run was started from here. Raises InputError if the note is damaged."""
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
    """All files of a run are here. Idempotent."""
    with contextlib.suppress(OSError, RuntimeError):  # a small file stays
        _note(run).unlink(missing_ok=True)


def _note(run: RunDirectory) -> Path:
    """Raises RuntimeError if this user has no home."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    folder = given if given.is_absolute() else Path.home() / ".local/state"
    return folder / "cutset/runs" / f"{plain_name(run.full_name, run.path)}.json"
