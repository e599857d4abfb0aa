"""File systems of single processes, in a sandbox: size, full states, and content afterwards."""

import errno
from pathlib import Path

import pytest

from testbed.runner.disks.own_disks import ON_OWN_DISK, PAGE_BYTES, OwnDisks
from tests.testbed.sandboxed import sandboxed, sandboxed_as_ordinary_user

pytestmark = pytest.mark.network
NAME, PAGES = "r0/server-0", 64


def pages_written(path: Path) -> int:
    """Return the number of pages that a file takes until the file system is full."""
    count = 0
    with path.open("ab", buffering=0) as file:
        try:
            while count <= PAGES:
                file.write(bytes(PAGE_BYTES))
                count += 1
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    return count


def seen(folder: str) -> dict[str, int]:
    """Return the number of pages that could be written after each step."""
    library = Path(folder) / "storage" / ON_OWN_DISK
    specs = {NAME: {"storage": str(library)}, "r0/client-0": {"storage": str(Path(folder) / "other")}}
    disks = OwnDisks(specs, {NAME: PAGES * PAGE_BYTES})
    disks.make()
    library.mkdir()
    found = {}
    disks.fill(NAME, "one")
    found["full though empty"] = pages_written(library / "a")
    disks.free(NAME, "one")
    found["room again"] = pages_written(library / "a")
    (library / "a").write_bytes(bytes(10 * PAGE_BYTES))
    disks.fill(NAME, "one")
    disks.fill(NAME, "two")
    found["full"] = pages_written(library / "b")
    disks.free(NAME, "one")
    found["full by another"] = pages_written(library / "b")
    (library / "a").unlink()
    found["what was freed"] = pages_written(library / "b")
    (library / "b").unlink()
    disks.free_all(NAME)
    found["all of it"] = pages_written(library / "c")
    disks.free_all("r0/client-0")
    return found


EXPECTED = {
    "full though empty": 0,
    "room again": PAGES,
    "full": 0,
    "full by another": 0,
    "what was freed": 10,
    "all of it": PAGES,
}


def test_a_file_system_is_full_from_a_fill_until_the_last_one_is_over(tmp_path):
    assert sandboxed(seen, str(tmp_path)) == EXPECTED
    assert list((tmp_path / "storage").iterdir()) == []


def test_the_same_holds_for_an_ordinary_user(tmp_path):
    assert sandboxed_as_ordinary_user(seen, str(tmp_path), home=tmp_path) == EXPECTED
