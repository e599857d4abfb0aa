"""The progress of one machine's files over all its connections: the next requests, and effects of answers.

It has no stream, clock or thread. A *pass* takes one listing and asks for what is missing of each file, from
the end of the local copy on. The passes after the run also compare digests of both ends, until all files are
equal. A changed file is shipped again in the next pass, after the run a limited number of times.
"""

import errno
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from experiments.files.whole_files import sync_folder
from testbed.machines.shipping.limits import DiskBudget
from testbed.machines.shipping.names import GROWING, destination
from testbed.machines.shipping.partial_file import PartialFile
from testbed.machines.shipping.protocol import FileEntry, Hash, Read
from testbed.machines.shipping.result import FileOutcome, ShippedFile

TRIES_MAX = 5
"""How often a file is shipped again after the run, until it is given up because it keeps changing."""


@dataclass(slots=True)
class _File:
    """A file of the machine, as it was listed last."""

    entry: FileEntry
    destination: str
    copy: PartialFile
    compared: bool = False  # whether this session has compared the local bytes with the machine's
    whole: bool = False
    broken: bool = False  # until the next pass, because the file is not the listed one
    failed: bool = False  # until it is listed with another size or identity
    given_up: bool = False
    elsewhere: bool = False  # the destination belongs to another machine
    suspect: bool = False  # the local bytes differ from the machine's: changed, unless it was replaced
    changed: bool = False  # although it should only grow
    tries: int = 0
    note: str = ""

    @property
    def only_grows(self) -> bool:
        """Whether its writers only append to it."""
        return self.entry.path.split("/")[0] in GROWING

    @property
    def is_wanted(self) -> bool:
        """Whether it is asked for in this pass."""
        return not (self.whole or self.broken or self.failed or self.given_up or self.elsewhere)

    def fail(self, why: str) -> None:
        """Leave it out until it is listed differently."""
        self.failed, self.whole, self.note = True, False, why


@dataclass(slots=True)
class FileTransfer:
    """One machine's files. claims: the machine that ships to each destination, shared by all transfers.

    Methods raise OSError only if the disk is full; any other local error fails only its file.
    """

    machine: str
    run: Path
    claims: MutableMapping[str, str]
    disk: DiskBudget
    _files: dict[str, _File] = field(default_factory=dict)
    _over: bool = False

    @property
    def files(self) -> int:
        """The number of known files."""
        return len(self._files)

    @property
    def got_bytes(self) -> int:
        """The number of bytes that have arrived."""
        return sum(file.copy.size for file in self._files.values())

    @property
    def known_bytes(self) -> int:
        """The total size of the known files."""
        return sum(file.entry.size for file in self._files.values())

    @property
    def needs_pass(self) -> bool:
        """Whether a file changed during this pass, so that another one is needed."""
        return any(file.broken and not file.given_up for file in self._files.values())

    def connected(self) -> None:
        """Begin a session: try files again, and compare local bytes with the machine's."""
        for file in self._files.values():
            file.compared = file.failed = False

    def listed(self, entries: Iterable[FileEntry], *, over: bool) -> None:
        """Begin a pass with all files of the machine. over: whether the run is, so that no file grows."""
        self._over = over
        gone = dict.fromkeys(self._files)
        for entry in entries:
            gone.pop(entry.path, None)
            file = self._files.get(entry.path) or self._add(entry)
            if not file.elsewhere:
                with self._contained(file):
                    self._update(file, entry)
        for path in gone:
            self._files[path].fail("it was removed on the machine")

    def reads(self, chunk_bytes: Callable[[], int]) -> Iterator[Read]:
        """Yield requests for all missing bytes."""
        for file in tuple(self._files.values()):
            with self._contained(file):
                path, size, identity = file.entry
                offset = file.copy.size
                while file.is_wanted and offset < size:
                    tail = "" if file.compared or not offset else file.copy.tail()
                    file.compared = True
                    length = min(chunk_bytes(), size - offset)
                    yield Read(path, identity, offset, length, tail)
                    offset += length

    def hashes(self) -> Iterator[Hash]:
        """Yield a request for the digest of each file that is complete and not verified."""
        for file in tuple(self._files.values()):
            if file.is_wanted and file.copy.size == file.entry.size:
                yield Hash(file.entry.path, file.entry.identity, file.entry.size)

    def took(self, asked: Read, data: bytes) -> bool:
        """Handle the answer to a READ; returns whether its bytes were used."""
        file = self._files[asked.path]
        if not file.is_wanted:
            return False
        with self._contained(file):
            file.copy.append(data)
            self._settle(file)
        return not file.failed

    def digest(self, asked: Hash, digest: bytes) -> None:
        """Handle the answer to a HASH."""
        file = self._files[asked.path]
        with self._contained(file):
            if file.copy.digest(asked.size) == digest:
                file.whole, file.note = True, ""
            else:
                file.changed = file.changed or file.only_grows
                self._ship_again(file)

    def changed(self, asked: Read | Hash) -> None:
        """Handle CHANGED: the file is no longer the listed one, or differs from the local bytes."""
        file = self._files[asked.path]
        if file.is_wanted:
            with self._contained(file):
                file.suspect = isinstance(asked, Read) and bool(asked.tail)
                self._ship_again(file)

    def gone(self, asked: Read | Hash, why: str) -> None:
        """Handle GONE: the file cannot be read on the machine."""
        self._files[asked.path].fail(f"it cannot be read there: {why}")

    def sync(self) -> None:
        """Sync the arrived files to the disk, so the machine may delete them. Raises OSError."""
        whole = [file for file in self._files.values() if file.whole]
        for file in whole:
            file.copy.sync()
        depths = [PurePosixPath(file.destination).parents for file in whole]
        for folder in dict.fromkeys(self.run / parent for parents in depths for parent in parents):
            sync_folder(folder)
        sync_folder(self.run.absolute().parent)

    def outcome(self) -> tuple[ShippedFile, ...]:
        """Return the outcomes of all known files."""
        return tuple(_outcome(file) for _, file in sorted(self._files.items()))

    def _add(self, entry: FileEntry) -> _File:
        where = str(destination(self.machine, entry.path))
        file = self._files[entry.path] = _File(entry, where, PartialFile(self.run / where))
        first = self.claims.setdefault(where, self.machine)
        if first != self.machine:
            file.elsewhere, file.note = True, f"{first} also has a file of that name"
        return file

    def _update(self, file: _File, entry: FileEntry) -> None:
        """Handle a listed file, which may have grown, have been replaced, or have changed."""
        replaced = entry.identity != file.entry.identity
        shrunk = entry.size < file.copy.size
        file.changed = file.changed or (file.only_grows and not replaced and (shrunk or file.suspect))
        if entry != file.entry:
            file.whole = file.failed = False
        file.entry, file.suspect = entry, False
        if replaced or shrunk:
            self._ship_again(file)
        file.broken = False
        if not entry.size and not file.whole:
            file.copy.append(b"")
        self._settle(file)

    def _settle(self, file: _File) -> None:
        """Let a complete file replace its old content."""
        if file.copy.size == file.entry.size:
            self.disk.give_back(file.copy.settle())

    def _ship_again(self, file: _File) -> None:
        """Ship the whole file again, from the next listing on."""
        self.disk.give_back(file.copy.restart())
        file.broken, file.whole = True, False
        if self._over:
            file.tries += 1
            if file.tries >= TRIES_MAX:
                file.given_up, file.note = True, "it keeps changing"

    @contextmanager
    def _contained(self, file: _File) -> Iterator[None]:
        """Limit a local error to its file, except for a full disk."""
        try:
            yield
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise
            file.fail(f"it cannot be written here: {error.strerror}")


def _outcome(file: _File) -> ShippedFile:
    kept = 0 if file.elsewhere else file.copy.kept_bytes
    became = FileOutcome.WHOLE if file.whole else FileOutcome.PARTIAL if kept else FileOutcome.MISSING
    path, size, _ = file.entry
    return ShippedFile(path, file.destination, became, kept, size, file.changed, file.note)
