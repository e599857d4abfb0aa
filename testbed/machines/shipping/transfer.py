"""The progress of one machine's files over all its connections: the next requests, and effects of answers.

It has no stream, clock or thread: `next` returns a possible request, `asked` records that it was sent, and
the caller passes in each answer. A file is read from the end of the local copy on; when both ends are
complete and of equal length, their digests are compared. A changed file is shipped again, a limited number of
times.
"""

import errno
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from experiments.files.whole_files import sync_folder
from testbed.machines.shipping.frames import ShippingError
from testbed.machines.shipping.limits import DiskBudget
from testbed.machines.shipping.messages import FileEntry, Hash, Listing, Read
from testbed.machines.shipping.names import GROWING, destination
from testbed.machines.shipping.partial_file import PartialFile
from testbed.machines.shipping.result import FileOutcome, ShippedFile

FILES_MAX = 20_000
TRIES_MAX = 5
"""How often a file is shipped again after the run, until it is given up because it keeps changing."""


@dataclass(slots=True)
class _File:
    """A file of the machine. Answers to requests of an earlier `generation` of it are ignored."""

    path: str
    destination: str
    copy: PartialFile
    size: int
    identity: int
    asked: int  # the end of the requested bytes
    compare: bool  # whether the next READ has the digest of the local bytes before it
    generation: int = 0
    stale: bool = False  # until a listing has it again
    hashing: bool = False
    whole: bool = False
    suspect: bool = False  # the local bytes differ from the machine's: changed, unless it was replaced
    changed: bool = False  # although it should only grow
    tries: int = 0
    note: str = ""
    failed: bool = False
    elsewhere: bool = False  # the destination belongs to another machine

    @property
    def only_grows(self) -> bool:
        """Whether its writers only append to it."""
        return self.path.split("/")[0] in GROWING


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request without an answer so far."""

    request: Read | Hash
    generation: int


class FileTransfer:
    """One machine's files. claims: the machine that ships to each destination, shared by all transfers.

    Methods raise OSError only if the disk is full; any other local error fails only its file.
    """

    def __init__(self, machine: str, run: Path, claims: MutableMapping[str, str], disk: DiskBudget) -> None:
        self._machine = machine
        self._run = run
        self._claims = claims
        self._disk = disk
        self._files: dict[str, _File] = {}
        self._due: dict[str, None] = {}
        self._over = False

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
        return sum(file.size for file in self._files.values())

    @property
    def stale(self) -> bool:
        """Whether another listing is needed to determine the files to ship."""
        return any(file.stale for file in self._files.values())

    def connected(self) -> None:
        """Start a new session: drop pending requests and the listing."""
        for file in self._files.values():
            self._rewind(file)
            file.stale = not file.elsewhere

    def run_is_over(self) -> None:
        """Mark the run as over: no file grows any more, so complete ones can be verified."""
        self._over = True
        self._due.update(dict.fromkeys(self._files))

    def listed(self, listing: Listing) -> None:
        """Handle a listing. Raises ShippingError if it exceeds the limits."""
        for path in listing.gone:
            if path in self._files and not self._files[path].elsewhere:
                self._fail(self._files[path], "it was removed on the machine")
        for entry in listing.entries:
            file = self._files.get(entry.path)
            if file is None:
                self._add(entry)
            elif not file.elsewhere:
                self._update(file, entry)
        if not listing.more:
            for file in self._files.values():
                if file.stale:  # the listing does not have it
                    self._fail(file, "it was removed on the machine")

    def next(self, chunk_bytes: int) -> Read | Hash | None:
        """Return the next request, or None; returns the same until `asked` is called."""
        while self._due:
            file = self._files[next(iter(self._due))]
            with self._contained(file):
                request = self._next_of(file, chunk_bytes)
                if request is not None:
                    return request
            del self._due[file.path]
        return None

    def asked(self, request: Read | Hash) -> PendingRequest:
        """Record that the request was sent."""
        file = self._files[request.path]
        if isinstance(request, Read):
            file.asked = request.offset + request.length
            file.compare = False
        else:
            file.hashing = True
        return PendingRequest(request, file.generation)

    def took(self, asked: PendingRequest, data: bytes) -> bool:
        """Handle the answer to a READ; returns whether its bytes were used."""
        file = self._files[asked.request.path]
        if asked.generation != file.generation:
            return False
        with self._contained(file):
            file.copy.append(data)
            if file.copy.size == file.size:
                self._disk.give_back(file.copy.settle())
                self._due[file.path] = None
        return not file.failed

    def digest(self, asked: PendingRequest, digest: bytes) -> None:
        """Handle the answer to a HASH."""
        file = self._files[asked.request.path]
        if asked.generation != file.generation:
            return
        with self._contained(file):
            file.hashing = False
            if file.copy.digest(file.size) == digest:
                file.whole, file.note = True, ""
            else:
                file.changed = file.only_grows
                self._ship_again(file)

    def changed(self, asked: PendingRequest) -> None:
        """Handle CHANGED: the file is no longer the listed one, or differs from the local bytes."""
        file = self._files[asked.request.path]
        if asked.generation == file.generation:
            with self._contained(file):
                file.suspect = isinstance(asked.request, Read) and bool(asked.request.tail)
                file.stale = True
                self._ship_again(file)

    def gone(self, asked: PendingRequest, why: str) -> None:
        """Handle GONE: the file cannot be read on the machine."""
        file = self._files[asked.request.path]
        if asked.generation == file.generation:
            self._fail(file, f"it cannot be read there: {why}")

    def sync(self) -> None:
        """Sync the arrived files to the disk, so the machine may delete them. Raises OSError."""
        whole = [file for file in self._files.values() if file.whole]
        for file in whole:
            file.copy.sync()
        depths = [PurePosixPath(file.destination).parents for file in whole]
        for folder in dict.fromkeys(self._run / parent for parents in depths for parent in parents):
            sync_folder(folder)
        sync_folder(self._run.absolute().parent)

    def outcome(self) -> tuple[ShippedFile, ...]:
        """Return the outcomes of all known files."""
        return tuple(_outcome(file) for _, file in sorted(self._files.items()))

    def _add(self, entry: FileEntry) -> None:
        if len(self._files) >= FILES_MAX:
            raise ShippingError(f"more than {FILES_MAX} files")
        where = str(destination(self._machine, entry.path))
        copy = PartialFile(self._run / where)
        file = _File(entry.path, where, copy, entry.size, entry.identity, copy.size, compare=copy.size > 0)
        self._files[entry.path] = file
        self._due[entry.path] = None
        first = self._claims.setdefault(where, self._machine)
        if first != self._machine:
            file.elsewhere = True
            self._fail(file, f"{first} also has a file of that name")
            return
        with self._contained(file):
            if copy.size > entry.size:
                file.changed = file.only_grows
                self._ship_again(file)
            self._settle_empty(file)

    def _update(self, file: _File, entry: FileEntry) -> None:
        """Handle a new entry of a file that grew, was replaced, or changed."""
        replaced = entry.identity != file.identity
        shrunk = entry.size < file.copy.size
        file.changed = file.changed or (file.only_grows and not replaced and (shrunk or file.suspect))
        file.size, file.identity = entry.size, entry.identity
        file.stale = file.suspect = file.whole = file.failed = False
        with self._contained(file):
            if replaced or shrunk:
                self._ship_again(file)
            else:
                self._rewind(file)
            self._settle_empty(file)

    def _next_of(self, file: _File, chunk_bytes: int) -> Read | Hash | None:
        if file.stale or file.failed or file.whole or file.hashing:
            return None
        if file.asked < file.size:
            tail = file.copy.tail() if file.compare else ""
            return Read(file.path, file.asked, min(chunk_bytes, file.size - file.asked), tail)
        if self._over and file.copy.size == file.size:
            return Hash(file.path, file.size)
        return None

    def _ship_again(self, file: _File) -> None:
        """Ship the whole file again."""
        self._disk.give_back(file.copy.restart())
        self._rewind(file)
        if self._over:
            file.tries += 1
            if file.tries >= TRIES_MAX:
                self._fail(file, "it keeps changing")

    def _rewind(self, file: _File) -> None:
        """Ignore pending answers; the next request begins where the local copy ends."""
        file.generation += 1
        file.asked, file.compare, file.hashing = file.copy.size, file.copy.size > 0, False
        self._due[file.path] = None

    def _settle_empty(self, file: _File) -> None:
        if file.size == 0:
            file.copy.append(b"")
            self._disk.give_back(file.copy.settle())

    def _fail(self, file: _File, why: str) -> None:
        file.failed, file.stale, file.note = True, False, why
        file.generation += 1

    @contextmanager
    def _contained(self, file: _File) -> Iterator[None]:
        """Limit a local error to its file, except for a full disk."""
        try:
            yield
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise
            self._fail(file, f"it cannot be written here: {error.strerror}")


def _outcome(file: _File) -> ShippedFile:
    kept = 0 if file.elsewhere else file.copy.kept_bytes
    became = FileOutcome.WHOLE if file.whole else FileOutcome.PARTIAL if kept else FileOutcome.MISSING
    return ShippedFile(file.path, file.destination, became, kept, file.size, file.changed, file.note)
