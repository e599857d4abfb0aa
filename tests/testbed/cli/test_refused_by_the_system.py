"""A read-only folder, a full disk, and invalid names give one line and exit code 3 or 2."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cli.main import run as cutset
from tests.analysis.pages.report.synthetic_run import write_run

START = "from testbed.cli.main import main; main()"


def mounted(script: str, folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a command after a script in a separate mount namespace; return its exit code and output."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    command = shlex.join([sys.executable, "-c", START, *arguments])
    ended = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", *user, "sh", "-ec", f"{script}\n{command}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stderr


def a_line(said: str) -> str:
    assert said.count("\n") == 1, said
    assert said.startswith("cutset: ")
    return said.removeprefix("cutset: ").rstrip()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["analyze", "compare"])
def test_a_read_only_run_is_an_error_in_one_line(tmp_path, command):
    run = write_run(tmp_path)
    readonly = f"mount --bind {run.path} {run.path} && mount -o remount,bind,ro {run.path}"
    names = [str(run.path)] * (2 if command == "compare" else 1)
    code, said = mounted(readonly, tmp_path, command, *names)
    last = said.splitlines()[-1] + "\n"  # an analysis says what it does, first
    assert "Read-only file system" in a_line(last)
    assert "Traceback" not in said
    assert code == (2 if command == "compare" else 3)


@pytest.mark.slow
@pytest.mark.parametrize("free_kb", [4, 300])
def test_a_disk_that_is_full_at_the_report_is_an_error_in_one_line(tmp_path, free_kb):
    run = write_run(tmp_path / "made")
    (tmp_path / "disk").mkdir()
    there = tmp_path / "disk" / run.name
    fill = (
        f"mount -t tmpfs -o size=16m tmpfs {tmp_path}/disk && cp -r {run.path} {there}\n"
        f"dd if=/dev/zero of={tmp_path}/disk/ballast bs=1k 2>/dev/null || true\n"
        f"truncate -s -{free_kb}k {tmp_path}/disk/ballast"
    )
    code, said = mounted(fill, tmp_path, "report", str(there))
    assert (code, a_line(said).rpartition(": ")[2]) == (3, "No space left on device")


@pytest.mark.parametrize("command", ["report", "analyze", "packets", "export"])
def test_a_too_long_name_is_an_error_in_one_line(tmp_path, capsys, command):
    assert cutset([command, str(tmp_path / ("x" * 300))]) in {2, 3}
    assert "too long" in a_line(capsys.readouterr().err)
    assert cutset([command, "/".join(["x" * 100] * 50)]) in {2, 3}
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "analyze", "packets", "export"])
def test_names_that_are_no_text_are_an_error_in_one_line(tmp_path, capsys, command):
    run = write_run(tmp_path)
    folder = run.path.with_name(os.fsdecode(b"caf\xe9"))
    run.path.rename(folder)
    assert cutset([command, str(folder)]) == 2
    assert "has a name that is not UTF-8" in a_line(capsys.readouterr().err)


def test_a_file_in_a_run_whose_name_is_no_text_is_left_alone(tmp_path, capsys):
    run = write_run(tmp_path)
    (run.path / os.fsdecode(b"notes-\xe9")).write_text("mine")
    assert cutset(["packets", str(run.path)]) in {0, 2}
    assert "Traceback" not in capsys.readouterr().err
