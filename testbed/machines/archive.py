"""The code that a machine needs, as one archive whose name is the SHA-256 of its content.

It holds the project's packages that machines need (runner, links, nodes, supervisor, shipping), the files of
systems that the user named (`--system-module`), and the installed distributions that these import, so that
nothing has to be installed there. If a run's system declares that its nodes need more distributions, or is a
system of programs (`testbed.machines.software.program_files`), the archive of that run has those, too.

The archive includes bytecode that is not compared with the sources at every start (PEP 552): the archive was
verified as a whole, and only root can change its unpacked files. The first start is therefore as fast as
later ones. The same sources give the same bytes: files are sorted and have no times, and bytecode is written
without back references, which would depend on what else this process has interned (marshal, version 2).

An archive fits one minor version of Python and one platform, because of the compiled modules. It is built
once and stored in the project's cache, under a name derived from all that it depends on.

Compiled Python modules often have debugging sections, which are most of their bytes. The dynamic loader only
reads the program headers, so the archive omits all bytes behind the last segment and the table of sections
that would refer to them. Source: elf(5).
"""

import gzip
import hashlib
import importlib.metadata
import importlib.util
import io
import marshal
import platform
import re
import struct
import sys
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from experiments.declared import SENT_FOLDER, module_files
from experiments.files.whole_files import replacing
from testbed.errors import MachineError

PROJECT = Path(__file__).resolve().parents[2]
CACHE = PROJECT / ".cache"

PACKAGES = ("experiments", "node", "systems", "testbed", "topologies")
NOT_ON_MACHINES = ("node/sim/", "testbed/backends/", "testbed/campaign/", "testbed/cli/", "testbed/shell/")
DISTRIBUTIONS = (
    "annotated-types",
    "mininet",
    "mypy-extensions",
    "psutil",
    "pydantic",
    "pydantic-core",
    "PyYAML",
    "typing-extensions",
    "typing-inspection",
    "uvloop",
    "zstandard",
)
NOT_NEEDED = (
    "mininet/examples/",
    "mininet/test/",
    "numpy/_pyinstaller/",
    "numpy/distutils/",
    "numpy/f2py/",
    "pydantic/mypy.py",
    "pydantic/v1/",
    "yaml/_yaml.",  # PyYAML's C parser: we use the Python one
    "zstandard/_cffi.",  # for other interpreters
    "zstandard/backend_cffi.py",
)
VERSION_COMPARISON = ("setuptools/_distutils/version.py", "distutils/version.py")
"""Mininet imports it from distutils, which not every Python has (PEP 632)."""

KEPT = re.compile(r"\.py$|\.so(\.[0-9]+)*$")  # modules, and shared objects with or without a version
TESTS = re.compile(r"^[^/]+/(.*/)?tests/")
FORMAT = 4  # raise it when the same sources should give another archive
PACKED_LEVEL = 6
MARSHAL_VERSION = 2  # the last one without back references
ARCHIVES_KEPT = 3


@dataclass(frozen=True, slots=True)
class Archive:
    """A gzipped tar, and its name: its SHA-256 in hexadecimal digits."""

    content: bytes = field(repr=False)
    sha256: str

    @classmethod
    def from_content(cls, content: bytes) -> Self:
        """Create an archive named by its content."""
        return cls(content, hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class AttachedFiles:
    """Further files of an archive, by their path in it, and which of them are executable."""

    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    executables: frozenset[str] = frozenset()


NOTHING = AttachedFiles()


def machine_archive(
    cache: Path = CACHE, more: Iterable[str] = (), attached: AttachedFiles = NOTHING
) -> Archive:
    """Return the archive of this project as it is now; build it unless it is in the cache.

    more: distributions in addition to `DISTRIBUTIONS`. attached: further files. Raises MachineError if a
    distribution is missing here, or the cache cannot be written.
    """
    project = {**dict(project_files()), **attached.files}
    distributions = sorted({*DISTRIBUTIONS, *more})
    path = cache / f"machine-{_key(project, distributions, attached.executables)}.tar.gz"
    try:
        if not path.is_file():
            cache.mkdir(exist_ok=True)
            with replacing(path, sync=False) as stream:
                files = {**project, **dict(distribution_files(distributions))}
                stream.write(pack(files, attached.executables))
            _remove_old(cache, path)
        return Archive.from_content(path.read_bytes())
    except OSError as error:
        raise MachineError(f"cannot store the archive for machines in {cache}: {error.strerror}") from error


def project_files() -> Iterator[tuple[str, bytes]]:
    """Yield the modules that machines need, by path in the archive: the project's and the user's systems."""
    for package in PACKAGES:
        for path in sorted((PROJECT / package).rglob("*.py")):
            name = path.relative_to(PROJECT).as_posix()
            if not name.startswith(NOT_ON_MACHINES):
                yield name, path.read_bytes()
    for path in module_files():
        yield f"{SENT_FOLDER}/{path.name}", path.read_bytes()


def distribution_files(distributions: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the modules, metadata and shared objects of these distributions."""
    for distribution in distributions:
        for name, path in _installed(distribution):
            metadata = name.endswith(".dist-info/METADATA")
            left_out = name.startswith((*NOT_NEEDED, "..")) or TESTS.match(name)
            if metadata or (KEPT.search(name) and not left_out):
                content = path.read_bytes()
                yield name, content if name.endswith(".py") else loadable_part(content)
    source, name = VERSION_COMPARISON
    yield name.replace("version", "__init__"), b""
    yield name, dict(_installed("setuptools"))[source].read_bytes()


def pack(files: Mapping[str, bytes], executables: Collection[str] = ()) -> bytes:
    """Return a reproducible gzipped tar of these files and their bytecode."""
    entries = dict(files)
    for name, content in files.items():
        if name.endswith(".py") and (code := bytecode(name, content)) is not None:
            entries[importlib.util.cache_from_source(name, optimization="")] = code
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(entries):
            entry = tarfile.TarInfo(name)
            entry.size = len(entries[name])
            entry.mode = 0o755 if name in executables else 0o644
            tar.addfile(entry, io.BytesIO(entries[name]))
    return gzip.compress(plain.getvalue(), PACKED_LEVEL, mtime=0)


def bytecode(name: str, source: bytes) -> bytes | None:
    """Return a module's .pyc file, which is not compared with the source; None if it is not Python 3."""
    try:
        code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    except SyntaxError:
        return None
    unchecked_hash = 0b01
    header = importlib.util.MAGIC_NUMBER + unchecked_hash.to_bytes(4, "little")
    return header + importlib.util.source_hash(source) + marshal.dumps(code, MARSHAL_VERSION)


def _installed(distribution: str) -> list[tuple[str, Path]]:
    files = _distribution(distribution).files or []
    return [(file.as_posix(), Path(str(file.locate()))) for file in files]


def _distribution(name: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        remedy = "`make setup`" if name in DISTRIBUTIONS else f"`.venv/bin/pip install {name}`"
        raise MachineError(f"machines need {name}, which is not installed here: {remedy}") from None


def _key(project: Mapping[str, bytes], distributions: Iterable[str], executables: Iterable[str]) -> str:
    """Return a cache key from all that an archive depends on, without reading the distributions' files."""
    key = hashlib.sha256()
    versions = [f"{name} {_distribution(name).version}" for name in (*distributions, "setuptools")]
    for line in (
        f"format {FORMAT}",
        sys.version,
        platform.machine(),
        *NOT_NEEDED,
        *versions,
        *sorted(executables),
    ):
        key.update(line.encode() + b"\n")
    for name, content in project.items():
        key.update(f"{name} {len(content)}\n".encode() + content)
    return key.hexdigest()[:16]


def _remove_old(cache: Path, made: Path) -> None:
    """Remove all but the newest archives from the cache; the one just built stays regardless of times."""
    others = [path for path in cache.glob("machine-*.tar.gz") if path != made]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[ARCHIVES_KEPT - 1 :]:
        path.unlink(missing_ok=True)


MAGIC = b"\x7fELF"
CLASS_64, LITTLE_ENDIAN = 2, 1
PT_LOAD = 1
PROGRAM_HEADERS = struct.Struct("<32xQ14xHH")  # of Elf64_Ehdr: e_phoff, e_phentsize, e_phnum
SEGMENT = struct.Struct("<I4xQ16xQ")  # of Elf64_Phdr: p_type, p_offset, p_filesz
HEADER_BYTES = 64
SECTIONS_OFFSET = slice(40, 48)  # e_shoff
SECTIONS_COUNT = slice(58, 64)  # e_shentsize, e_shnum, e_shstrndx


def loadable_part(content: bytes) -> bytes:
    """Return the shared object without sections; unchanged if it is not 64-bit little-endian ELF."""
    if len(content) < HEADER_BYTES or content[:6] != MAGIC + bytes((CLASS_64, LITTLE_ENDIAN)):
        return content
    table, size, count = PROGRAM_HEADERS.unpack_from(content)
    ends = [table + size * count]
    for number in range(count):
        kind, offset, file_bytes = SEGMENT.unpack_from(content, table + size * number)
        if kind == PT_LOAD:
            ends.append(offset + file_bytes)
    part = bytearray(content[: max(ends)])
    for place in (SECTIONS_OFFSET, SECTIONS_COUNT):
        part[place] = bytes(place.stop - place.start)
    return bytes(part)
