"""What a URL names that is no file of this machine: in S3, on HDFS, in Google's or Microsoft's storage.

Arrow's file systems read and write there; how each finds its credentials and where it is stands there (for S3
AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL, or `?endpoint_override=` in the URL).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from topologies.errors import InputError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

COPIED_BYTES = 8 << 20
_URL = re.compile(r"[a-z][a-z0-9+.-]+://")
_SAME = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names for what Arrow calls otherwise."""


def is_url(name: str) -> bool:
    """Whether this is a URL, and no path."""
    return _URL.match(name) is not None


def name_of(url: str) -> str:
    """The last part of its path."""
    return PurePosixPath(url.partition("://")[2].partition("?")[0]).name


def reached(url: str) -> tuple["FileSystem", str]:
    """The store that a URL leads to, and the path in it. Raises OSError, ValueError, NotImplementedError."""
    from pyarrow.fs import FileSystem  # noqa: PLC0415  (takes long to import, and few need it)

    scheme, _, rest = url.partition("://")
    found: tuple[FileSystem, str] = FileSystem.from_uri(f"{_SAME.get(scheme, scheme)}://{rest}")
    return found


def copy(store: "FileSystem", path: str, file: Path, size: int) -> None:
    """Copy the first bytes of what is stored, as they are: Arrow would unpack what ends with .zst."""
    with store.open_input_stream(path, compression=None) as source, file.open("wb") as target:
        while (left := size - target.tell()) and (some := source.read(min(left, COPIED_BYTES))):
            target.write(some)


@contextmanager
def told(url: str) -> Iterator[None]:
    """What Arrow says is wrong, in a line, as InputError. It raises ValueError for what is no URL of its."""
    try:
        yield
    except (OSError, ValueError, NotImplementedError) as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(url, None, "", f"cannot be read or written there: {first}") from error
