"""Images of this user, unpacked once: below $XDG_CACHE_HOME/cutset/images, by default ~/.cache/cutset/images.

    as-root/<digest>/root    the files, with the owners that the image gives them
    as-user/<digest>/root    the files, all the user's own
    fetched/<digest>         what skopeo fetched for a reference of this digest
    made/<name>              what `make images` made, named cutset:<name>

A folder appears there whole or not at all. Images may be removed at any time between runs.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

from node.core.program import Image
from systems.images.archives import Files, ImageDescription, ImageError, described, opened
from systems.images.layers import unpack

STORE_VARIABLE = "CUTSET_IMAGES"
"""Variable with the store's path on the machines of an inventory."""
MADE = "cutset:"
REFERENCE = re.compile(rf"{MADE}[\w.-]+|(docker://|docker-daemon:|containers-storage:)[\w.:/@+-]+")
FETCH_TIMEOUT_S = 1800.0
PARTIAL = ".partial-"
PIECE_BYTES = 1 << 20
ERROR_CHARACTERS_MAX = 300
_TIME = re.compile(r'^time="[^"]*" level=\w+ msg=')


def is_reference(source: str) -> bool:
    """Return whether the image is in the store: skopeo fetches it, or `make images` made it."""
    return REFERENCE.fullmatch(source) is not None


def located(source: str, folder: Path) -> str:
    """Return a source whose path, if it is one, is absolute. folder: to which it is relative."""
    return source if is_reference(source) else str(folder.resolve() / source)


def describe(source: str) -> ImageDescription:
    """Return an image's description. source: as in `Image`. A reference is fetched once.

    Raises ImageError.
    """
    if not source.isprintable():
        raise ImageError(f"{source!r} has characters that no name of a file should have")
    try:
        path, name = _place(source)
        changed_ns = path.stat().st_mtime_ns
    except OSError as error:
        raise ImageError(f"{source} cannot be read: {error.strerror}") from None
    return _describe(path, name, changed_ns)


def root_of(image: Image, *, keeps_owners: bool) -> Path:
    """Return where the files of an image are, or will be."""
    return _kept(image.digest, keeps_owners=keeps_owners) / "root"


def ensure_unpacked(image: Image, *, keeps_owners: bool) -> None:
    """Unpack an image into the store if it is not there. Raises ImageError."""
    kept = _kept(image.digest, keeps_owners=keeps_owners)
    if kept.is_dir():
        return
    path, name = _place(image.source)
    with _making(kept) as folder, opened(path) as files:
        if folder is None:
            return
        found = _as_planned(image, files, name)
        (folder / "root").mkdir()
        unpack(files, found, folder / "root", keeps_owners=keeps_owners)


def pack(image: Image, stream: IO[bytes]) -> None:
    """Write an image as `docker save` does. Raises ImageError, and what writing to the stream raises."""
    path, name = _place(image.source)
    with opened(path) as files:
        found = _as_planned(image, files, name)
        layers = {f"{number}.tar": layer for number, (layer, _) in enumerate(found.layers)}
        listed = json.dumps([{"Config": "config.json", "Layers": list(layers)}])
        with tarfile.open(fileobj=stream, mode="w|", bufsize=PIECE_BYTES) as archive:
            _add(archive, "manifest.json", io.BytesIO(listed.encode()))
            _add(archive, "config.json", io.BytesIO(found.configuration))
            for number, layer in layers.items():
                with files.open(layer) as content:
                    _add(archive, number, content)


def _as_planned(image: Image, files: Files, name: str) -> ImageDescription:
    found = described(files, name)
    if found.digest != image.digest:
        raise ImageError(f"{image.source} is not the planned image any more: it was {image.digest}")
    return found


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.size = content.seek(0, os.SEEK_END)
    content.seek(0)
    archive.addfile(info, content)


@cache
def _describe(path: Path, name: str, changed_ns: int) -> ImageDescription:
    """Read a description, cached. changed_ns: so that a changed file is read again."""
    with opened(path) as files:
        return described(files, name)


def _place(source: str) -> tuple[Path, str]:
    """Return the folder or archive of an image, and its name in there; "": there is only one."""
    if source.startswith(MADE):
        path = _store() / "made" / source.removeprefix(MADE)
        if not path.is_dir():
            raise ImageError(f"{source} is not there yet: `make images` makes it")
        return path, ""
    if is_reference(source):
        return _fetched(source), ""
    path = Path(source)
    if not path.exists() and ":" in path.name:
        file, _, name = source.rpartition(":")
        while not Path(file).exists() and ":" in Path(file).name:  # names may have a port or a tag
            file, _, more = file.rpartition(":")
            name = f"{more}:{name}"
        return Path(file), name
    return path, ""


def _kept(digest: str, *, keeps_owners: bool) -> Path:
    return _store() / ("as-root" if keeps_owners else "as-user") / digest.removeprefix("sha256:")


def _store() -> Path:
    if there := os.environ.get(STORE_VARIABLE):
        return Path(there)
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".cache") / "cutset" / "images"


def _fetched(reference: str) -> Path:
    kept = _store() / "fetched" / hashlib.sha256(reference.encode()).hexdigest()
    if kept.is_dir():
        return kept
    if shutil.which("skopeo") is None:
        raise ImageError(f"{reference} is fetched by skopeo, which is not installed: apt-get install skopeo")
    with _making(kept) as folder:
        if folder is not None:
            command = ["setpriv", "--pdeathsig", "KILL", "skopeo", "copy", "--quiet"]
            _run([*command, reference, f"dir:{folder}"], reference)
    return kept


def _run(command: list[str], reference: str) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=FETCH_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ImageError(f"{reference} was not fetched within {FETCH_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        why = _TIME.sub("", last).strip('"').replace('\\"', '"')[:ERROR_CHARACTERS_MAX]
        remedy = "save it where there is a network (`skopeo copy`, `docker save`) and name the file"
        raise ImageError(f"{reference} cannot be fetched: {why}; {remedy}")


@contextlib.contextmanager
def _making(kept: Path) -> Iterator[Path | None]:
    """Yield a new folder that becomes `kept` at the end; None if another process made it meanwhile.

    One process at a time makes something in the store; what killed ones left is removed. Raises ImageError.
    """
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        _check_private(_store())
        with (_store() / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in kept.parent.glob(f"{PARTIAL}*"):
                shutil.rmtree(left)
            if kept.is_dir():
                yield None
                return
            folder = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=kept.parent))
            try:
                yield folder
                folder.rename(kept)
            finally:
                shutil.rmtree(folder, ignore_errors=True)  # it was renamed, or is of no use
    except OSError as error:
        raise ImageError(f"cannot be kept below {_store()}: {error.strerror}") from None


def _check_private(store: Path) -> None:
    """Close the store to others, who could run its executables as their owners. Raises ImageError."""
    found = store.stat()
    if found.st_uid != os.geteuid():
        raise ImageError(f"{store} belongs to another user: set XDG_CACHE_HOME")
    if stat.S_IMODE(found.st_mode) != stat.S_IRWXU:
        store.chmod(stat.S_IRWXU)
