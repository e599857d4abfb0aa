"""The list of `cutset list`: the files that come with Cutset, with a description or why they are unusable.

Checking that a file is usable means reading it with its sweep, its topology and its system, which takes
seconds for all. If all are usable, the list is cached in `.cache/` with a digest of the files and of our code
that reads them. While the digest stays the same, the cache is used. Errors are never cached, nor are lists
that include systems from elsewhere.
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
"""By title and name: the description of a file, or the error that makes it unusable."""


def sections() -> Sections:
    """Return all files that come with Cutset."""
    digest = _digest()
    kept = _cached(digest)
    if kept is not None:
        return kept
    found = _checked()
    usable = not any(isinstance(text, InputError) for part in found.values() for text in part.values())
    if usable and are_all_ours():
        with suppress(OSError):  # the checkout is read-only: checked again next time
            KEPT.parent.mkdir(exist_ok=True)
            write_whole(KEPT, json.dumps({"digest": digest, "sections": found}), sync=False)
    return found


def _cached(digest: str) -> Sections | None:
    """Return the cached list if its digest is this one."""
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
        title: {name: _described(describe, name) for name in names}
        for title, (names, describe) in readers.items()
    }


def _described(describe: Callable[[str], str], name: str) -> str | InputError:
    try:
        return describe(name)
    except InputError as error:
        return error


def _digest() -> str:
    """Return a digest of the names and contents of all files that the list depends on."""
    digest = hashlib.sha256()
    for path in _deciding():
        try:
            content = Path(path).read_bytes()
        except OSError as error:  # the list reports it when it reads the file
            content = str(error).encode()
        digest.update(f"{path}\0{len(content)}\0".encode(errors="surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def _deciding() -> Iterator[str]:
    """Yield the files below the folders of DECIDING, without what others made (node_modules)."""
    for room in DECIDING:
        for folder, folders, names in os.walk(PROJECT / room):
            folders[:] = sorted(set(folders) - {"__pycache__", "node_modules"})
            yield from (f"{folder}/{name}" for name in sorted(names))
