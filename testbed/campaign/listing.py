"""What `cutset list` says: the files that come with Cutset, with their descriptions or why they are unusable.

Knowing that a file can be used means checking it with its sweep, its topology and its system, which takes
seconds for all. If all can be used, the list stays in `.cache/` with a digest of what decides it: the files
and our code that reads them. While the digest stays the same, the list is not made again. An error is never
kept, nor is a list in which systems from elsewhere have a say.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from experiments.declared import are_all_ours
from experiments.whole_files import write_whole
from topologies.errors import InputError

PROJECT = Path(__file__).resolve().parents[2]
DECIDING = ("topologies", "systems", "experiments", "node")
KEPT = PROJECT / ".cache" / "list.json"

Sections = Mapping[str, Mapping[str, str | InputError]]
"""By title and name: what a file describes, or why it cannot be used."""


def sections() -> Sections:
    """All files that come with Cutset."""
    digest = _digest()
    kept = _kept(digest)
    if kept is not None:
        return kept
    found = _checked()
    usable = not any(isinstance(said, InputError) for part in found.values() for said in part.values())
    if usable and are_all_ours():
        with suppress(OSError):  # a checkout that cannot be written: it is found out again the next time
            KEPT.parent.mkdir(exist_ok=True)
            write_whole(KEPT, json.dumps({"digest": digest, "sections": found}), sync=False)
    return found


def _kept(digest: str) -> Sections | None:
    """What was found when everything was as it is now."""
    try:
        kept = json.loads(KEPT.read_bytes())
        return kept["sections"] if kept["digest"] == digest else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _checked() -> Sections:
    from experiments.loader import experiment_names, load_experiment
    from experiments.suite import read_suite, suite_names
    from systems.loader import load_system
    from systems.names import system_names
    from topologies.loader import load_topology, topology_names

    readers: dict[str, tuple[list[str], Callable[[str], str]]] = {
        "Experiments": (experiment_names(), lambda name: load_experiment(name).description),
        "Topologies": (topology_names(), lambda name: load_topology(name).description),
        "Systems of programs": (system_names(), lambda name: load_system(name).description),
        "Suites": (suite_names(), lambda name: read_suite(name).suite.description),
    }
    return {
        title: {name: _said(describe, name) for name in names} for title, (names, describe) in readers.items()
    }


def _said(describe: Callable[[str], str], name: str) -> str | InputError:
    try:
        return describe(name)
    except InputError as error:
        return error


def _digest() -> str:
    """Of the names and contents of all files that decide what is found."""
    digest = hashlib.sha256()
    for path in _deciding():
        try:
            content = Path(path).read_bytes()
        except OSError as error:  # reading the file says so in its line
            content = str(error).encode()
        digest.update(f"{path}\0{len(content)}\0".encode(errors="surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def _deciding() -> Iterator[str]:
    """The files below the rooms of DECIDING. Links to folders lead to what others made (node_modules)."""
    for room in DECIDING:
        for folder, folders, names in os.walk(PROJECT / room):
            folders[:] = sorted(set(folders) - {"__pycache__", "node_modules"})
            yield from (f"{folder}/{name}" for name in sorted(names))
