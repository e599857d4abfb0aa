"""Remote stores that a URL names: S3, HDFS, Google's or Microsoft's storage.

Arrow's file systems read there; Arrow's documentation lists how each finds credentials and endpoint
(for S3 AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL, or `?endpoint_override=` in the URL).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from topologies.errors import InputError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

COPIED_BYTES = 8 << 20
_URL = re.compile(r"[a-z][a-z0-9+.-]+://")
_SAME = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's schemes and Arrow's equivalents."""


def is_url(name: str) -> bool:
    """Return whether the name is a URL instead of a path."""
    return _URL.match(name) is not None


def url_name(url: str) -> str:
    """Return the last part of the URL's path."""
    return PurePosixPath(url.partition("://")[2].partition("?")[0]).name


def store_and_path(url: str) -> tuple["FileSystem", str]:
    """Return the store of a URL, and the path in it. Raises OSError, ValueError, NotImplementedError."""
    from pyarrow.fs import FileSystem  # noqa: PLC0415  (slow to import, and rarely needed)

    scheme, _, rest = url.partition("://")
    found: tuple[FileSystem, str] = FileSystem.from_uri(f"{_SAME.get(scheme, scheme)}://{rest}")
    return found


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Convert Arrow's errors to a one-line InputError. Arrow raises ValueError for an unknown URL."""
    try:
        yield
    except (OSError, ValueError, NotImplementedError) as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(url, None, "", f"cannot be read there: {first}") from error
