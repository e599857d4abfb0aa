"""Commands write only printable characters to a terminal, whatever a run contains."""

import io
import shutil
import sys
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from analysis.schemas import TRANSFERS
from experiments.files.sanitize import printable, printable_lines
from experiments.records.rundir import RunDirectory
from testbed.campaign.printable_streams import PrintableStream, unfiltered
from testbed.campaign.texts.progress import LiveFollower
from testbed.cli import main
from testbed.errors import TestbedError
from tests.analysis.inspect.packets.small_run import around_the_cut

HOSTILE = (
    "\x1b]0;title\x07",  # the terminal's title
    "\x1b[2J\x1b[H",  # cleared
    "\x1b[8mhidden",
    "\x9b2J",  # the same as C1
    "\x1bc",
    "\r\x08overwritten",
    "\u202egnp.exe",  # turned around
    "\u2066\u200b\u061c",
    "\udc80",  # a byte of a name that is not UTF-8
)
PLAIN = "r2-proxy-0 ä → ±0.1 ms, 12\u202f345\u00a0B ↻ 日本"


def is_shown(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\u00a0\u202f" for letter in text)


def test_printable_characters_stay_unchanged():
    assert printable(PLAIN) == PLAIN
    coloured = click.style("failed", fg="red", bold=True) + click.style(" dim", fg="bright_black", dim=True)
    assert printable_lines(f"{PLAIN}\n\t{coloured}\n") == f"{PLAIN}\n\t{coloured}\n"
    assert printable("two\nlines") == "two?lines"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_command_writes_unprintable_characters(monkeypatch, capsys, text):
    @click.command()
    def command() -> None:
        click.echo(f"out {text}")
        sys.stdout.writelines([f"lines {text}\n"])
        click.echo(f"err {text}", err=True)
        print(f"print {text}")  # noqa: T201
        raise TestbedError(f"error {text}")

    monkeypatch.setattr(main.CommandGroup, "get_command", lambda *_: command)
    before = sys.stdout, sys.stderr
    assert main.run(["plan"]) == 1
    assert (sys.stdout, sys.stderr) == before
    said = capsys.readouterr()
    assert is_shown(said.out + said.err)
    assert [line.split()[0] for line in said.out.splitlines()] == ["out", "lines", "print"]
    assert said.err.startswith("err ")
    assert "\ncutset: error " in said.err


def test_bytes_are_written_as_they_are():
    below = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    stream = PrintableStream(below)
    stream.buffer.write(b"\x1b\x9b\x00")
    assert below.buffer.getvalue() == b"\x1b\x9b\x00"
    assert unfiltered(stream) is below
    assert unfiltered(below) is below


@pytest.mark.parametrize("text", HOSTILE)
def test_a_live_line_shows_only_printable_characters(text):
    follow = LiveFollower()
    shown = io.StringIO()
    follow._progress.live.console = Console(file=shown, force_terminal=False, width=200)
    assert is_shown(follow._described(f"step {text}"))
    follow.show(f"problem: {text}")
    follow.show("two\nlines")
    assert is_shown(shown.getvalue())
    assert "problem: " in shown.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return around_the_cut().write(tmp_path_factory.mktemp("runs") / "a-run")


@pytest.mark.parametrize("command", [["packets"], ["packets", "--format", "json"],
                                     ["packets", "--retransmissions"],
                                     ["follow", "2", "1"], ["follow", "2", "1", "--packets"]])  # fmt: skip
def test_names_in_a_runs_tables_are_shown_in_one_line(made, tmp_path, capsys, command):
    text = "".join(HOSTILE[:-1])
    run = RunDirectory(Path(shutil.copytree(made.path, tmp_path / "a-run")))
    [first, *more] = [
        path for path in run.table("transfers").glob("*.parquet") if pq.read_metadata(path).num_rows
    ]
    rows = pa.concat_tables([pq.read_table(path) for path in (first, *more)]).to_pylist()
    for path in (first, *more):
        path.unlink()
    for row in rows:
        row["sender"] = row["sender"] and f"{row['sender']}{text}\nforged"
        row["fate"] = f"{row['fate']}{text}" if row["fate"] != "arrived" else row["fate"]
    table = pa.Table.from_pylist(sorted(rows, key=lambda row: row["t_ns"]), schema=TRANSFERS)
    pq.write_table(table, first)
    code = main.run([command[0], str(run.path), *command[1:]])
    said = capsys.readouterr()
    assert code in {0, 1, 2}
    assert "Traceback" not in said.err
    assert is_shown(said.out + said.err)
    assert not [line for line in said.out.splitlines() if line.startswith("forged")]
    if "json" not in command:
        assert "?forged" in said.out or code != 0
