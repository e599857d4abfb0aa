"""The program that unpacks the code on a machine, run here: its checks, and its remaining files."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from testbed.machines.archive import pack
from testbed.machines.software import trusted_folders, unpacking
from testbed.machines.software.deploy import sent_program
from testbed.machines.ssh import time_limit
from tests.testbed.machines.lab import ONLY_ROOT

FILES = {"node/__init__.py": b"", "node/core/a.py": b"A = 1\n"}


def unpack(
    folder: Path, content: bytes, *, sha256: str | None = None, size: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program as on a machine."""
    arguments = [str(folder), sha256 or hashlib.sha256(content).hexdigest(), str(size or len(content))]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", sent_program(time_limit, trusted_folders, unpacking), *arguments],
        input=content,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_an_archive_is_unpacked_under_its_hash_and_requested_once(tmp_path: Path) -> None:
    content = pack(FILES)
    assert unpack(tmp_path / "c" / "code", content).stdout.split() == ["want", "unpacked"]
    (target,) = (tmp_path / "c" / "code").iterdir()
    assert target.name == hashlib.sha256(content).hexdigest()
    assert {name: (target / name).read_bytes() for name in FILES} == FILES
    assert unpack(tmp_path / "c" / "code", content).stdout.split() == ["have"]


@pytest.mark.parametrize("problem", ["cut short", "other bytes"])
def test_an_incomplete_archive_leaves_nothing(tmp_path: Path, problem: str) -> None:
    content = pack(FILES)
    came = content[:-9] if problem == "cut short" else content[:-9] + bytes(9)
    done = unpack(tmp_path / "code", came, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    assert done.returncode == 1
    assert f"{len(came)} of {len(content)} bytes" in done.stderr
    assert list((tmp_path / "code").iterdir()) == []


def test_code_unpacked_before_a_reboot_is_replaced(tmp_path: Path) -> None:
    content = pack(FILES)
    unpack(tmp_path / "code", content)
    (target,) = (tmp_path / "code").iterdir()
    (target / unpacking.UNPACKED_IN).write_text("another boot\n")
    (target / "node/core/a.py").write_text("")  # it never reached the disk
    assert unpack(tmp_path / "code", content).stdout.split() == ["want", "unpacked"]
    assert (target / "node/core/a.py").read_bytes() == FILES["node/core/a.py"]
    assert sorted(path.name for path in tmp_path.glob("code/*")) == [target.name]
    assert not (target / "before").exists()


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:gz") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = 1
        tar.addfile(entry, io.BytesIO(b"x"))
    done = unpack(tmp_path / "code", plain.getvalue())
    assert done.returncode == 1
    assert "not a plain file below the folder" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["code"]


@ONLY_ROOT
@pytest.mark.parametrize("whose", ["home", "home/cutset", "home/cutset/code"])
def test_a_folder_owned_by_another_user_or_below_one_is_refused(tmp_path: Path, whose: str) -> None:
    (tmp_path / "home/cutset/code").mkdir(parents=True)
    os.chown(tmp_path / whose, 65534, 65534)
    done = unpack(tmp_path / "home/cutset/code", pack(FILES))
    assert done.returncode == 1
    assert f"{tmp_path / whose} belongs to another user" in done.stderr
    assert list((tmp_path / "home/cutset/code").iterdir()) == []


@ONLY_ROOT
def test_the_login_user_may_own_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 65534, 65534)
    monkeypatch.setenv("SUDO_UID", "65534")
    assert unpack(tmp_path / "home/cutset/code", pack(FILES)).returncode == 0


@pytest.mark.parametrize("place", ["way", "way/cutset"])
def test_a_folder_that_others_can_change_is_refused_unless_it_is_sticky(tmp_path: Path, place: str) -> None:
    (tmp_path / "way/cutset").mkdir(parents=True)
    (tmp_path / place).chmod(0o777)
    done = unpack(tmp_path / "way/cutset/code", pack(FILES))
    assert done.returncode == 1
    assert f"`chmod go-w {tmp_path / place}`" in done.stderr
    (tmp_path / place).chmod(0o1777)
    assert unpack(tmp_path / "way/cutset/code", pack(FILES)).returncode == 0


def test_a_link_on_the_path_must_lead_to_a_trusted_folder(tmp_path: Path) -> None:
    (tmp_path / "there/cutset").mkdir(parents=True)
    (tmp_path / "here").symlink_to("there")
    assert unpack(tmp_path / "here/cutset/code", pack(FILES)).returncode == 0
    (tmp_path / "there").chmod(0o777)
    done = unpack(tmp_path / "here/cutset/code", pack(FILES))
    assert f"`chmod go-w {tmp_path / 'there'}`" in done.stderr


def test_circular_links_and_a_file_on_the_path_are_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "file").touch()
    for name in ("one", "file"):
        done = unpack(tmp_path / name / "cutset/code", pack(FILES))
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
