"""Captures in place of a run: the commands of docs/captures.md, and how other commands refuse them."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.inspect.packets.captured import PacketQuery
from testbed.cli import main
from testbed.cli.named_run import is_captures
from tests.analysis.inspect.packets.small_run import around_the_cut
from tests.analysis.taps.incident import REFUSED, incident
from tests.testbed.leftovers import wait_until

PAGE = Path(__file__).parents[4] / "docs" / "captures.md"


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    return incident().write(tmp_path_factory.mktemp("incident"))


@pytest.mark.slow
def test_every_command_of_the_page_answers(sites, monkeypatch, capsys):
    monkeypatch.chdir(sites[0].parent)
    commands = [shlex.split(line)[1:] for line in re.findall(r"^(cutset .*)$", PAGE.read_text(), re.M)]
    assert len(commands) >= 8
    for words in commands:
        assert main.run(words) == 0, words
        said = capsys.readouterr()
        assert said.out or "hole.pcapng" in words or "no packet matches" in said.err, words
    assert {path.name for path in Path().glob("*.*")} >= {"captures.html", "hole.pcapng"}


def test_packets_between_two_taps_have_their_delay_or_are_lost(sites, capsys):
    assert main.run(["packets", *map(str, sites), "--from", "1.99", "--to", "2.3", "--type", "data"]) == 0
    found = capsys.readouterr()
    lines = [re.sub(r"\s{2,}", "  ", line.strip()) for line in found.out.splitlines()]
    assert [line.rpartition("  ")[2] for line in lines] == ["lost", "lost"]
    assert lines[1].startswith(
        "2.200000  site-a > site-b  10.1.0.2:40000 > 10.2.0.2:7000  DATA 100 B (again)"
    )
    assert found.err == "2 packets\n"


def test_packets_of_one_tap_are_selected_by_address_port_and_type(sites, capsys):
    words = ["packets", str(sites[0]), "--host", "10.2.0.2", "--port", str(REFUSED), "--format", "json"]
    assert main.run([*words, "--type", "rst"]) == 0
    [row] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["src"], row["sport"], row["type"]) == ("10.2.0.2", REFUSED, "RST")


KILLED = """
import os, signal, sys
from analysis.pages.taps import page
from testbed.cli import main
page.write_page = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main.run(["captures", *sys.argv[1:]])
"""


def test_nothing_is_left_of_a_page_whose_writer_is_killed(sites, tmp_path):
    words = [sys.executable, "-c", KILLED, *map(str, sites), "-o", str(tmp_path / "page.html")]
    environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[1]), "TMPDIR": str(tmp_path)}
    assert subprocess.run(words, env=environment, check=False).returncode == -signal.SIGKILL
    wait_until(lambda: not any(tmp_path.iterdir()), "the end of its temporary files")


def test_a_host_is_found_in_any_notation_of_its_address():
    assert PacketQuery(hosts=("2001:DB8:0::1", "0::1")).addresses == ("2001:db8::1", "::1")


def test_a_limit_is_reported(sites, capsys):
    assert main.run(["packets", str(sites[0]), "--limit", "3"]) == 0
    found = capsys.readouterr()
    assert len(found.out.splitlines()) == 3
    assert "stopped at --limit 3" in found.err


def test_standard_input_is_a_capture(sites, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sites[0].read_bytes())))
    assert main.run(["sql", "-", "SELECT count(*) AS n FROM connections", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2"


def test_a_folder_and_a_pattern_are_captures(tmp_path, capsys):
    incident().write(tmp_path)
    for name in (tmp_path, tmp_path / "site-*"):
        assert main.run(["sql", str(name), "SELECT capture FROM captures ORDER BY 1"]) == 0
        assert capsys.readouterr().out.splitlines()[2:4] == ["site-a", "site-b"]


def test_one_question_may_cover_a_run_and_captures(sites, tmp_path, capsys):
    run = around_the_cut().write(tmp_path / "a-run")
    assert not is_captures(str(run.path))
    question = "SELECT run, count(*) AS n FROM packets GROUP BY run ORDER BY run"
    assert main.run(["sql", str(run.path), str(sites[0]), question]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:4]] == ["a-run", "captures"]


@pytest.mark.parametrize(
    "words",
    [["report"], ["follow", "1", "1"], ["diagram", "--from", "1", "--to", "2"], ["analyze"], ["compare"]],
)
def test_commands_that_need_a_plan_refuse_captures_in_one_line(words, sites, capsys):
    assert main.run([words[0], str(sites[0]), *words[1:]]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        f"cutset: {sites[0]}: is no run but captures, without the plan of a run that this command needs: "
        "use `cutset captures`, `packets` or `sql`"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--around", "cut"], "--around is for runs: captures take --from, --to, --host, --port and --type"),
        (["--host", "r1"], "--host r1: captures know addresses, as 10.0.0.1"),
        (["--lost"], "--lost: needs captures of two places on one path"),
        (["--type", "EVENTS"], "--type EVENTS: is none of RST, SYN-ACK"),
        (["--at", "site-x", "--pcap", "x"], "--at site-x: no such capture: did you mean site-a?"),
        (["--from", "2", "--to", "1"], "--from 2 is not before --to 1"),
    ],
)
def test_options_that_captures_lack_are_refused_by_name(words, said, sites, capsys):
    assert main.run(["packets", str(sites[0]), *words]) == 2
    assert said in capsys.readouterr().err


def test_files_that_are_no_captures_are_refused_by_name(tmp_path, capsys):
    assert main.run(["sql", str(tmp_path / "none.pcap"), "SELECT 1"]) == 2
    assert "none.pcap: no captures there" in capsys.readouterr().err
    (tmp_path / "text.pcap").write_text("text, not packets, and long enough")
    assert main.run(["captures", str(tmp_path / "text.pcap")]) == 2
    assert "text.pcap: neither a pcap nor a pcapng file" in capsys.readouterr().err
