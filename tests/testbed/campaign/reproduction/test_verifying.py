"""A run is verified from its captures; a changed packet, number, verdict, claim or table is detected."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli import main
from tests.analysis.inspect.packets.small_run import around_the_cut
from tests.testbed.campaign.repacking import plant, repacked

NAME = "20260314T020000Z-around-the-cut-0a1b2c"


@pytest.fixture
def run(tmp_path):
    return around_the_cut().write(tmp_path / "made" / NAME)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a colleague's folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def packed(run: RunDirectory, here: Path) -> Path:
    archive = here / "run.tar.zst"
    assert main.run(["export", str(run.path), "-o", str(archive), "--force"]) == 0
    return archive


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_runs_claims_follow_from_its_captures_and_stay_unchanged(run, here, capsys):
    archive = packed(run, here)
    assert main.run(["verify", str(archive)]) == 0
    assert [path.name for path in here.iterdir()] == ["run.tar.zst"]
    assert main.run(["analyze", str(archive)]) in {0, 1}
    before = contents(here / "runs")
    assert main.run(["verify", NAME]) == 0
    assert contents(here / "runs") == before
    said = capsys.readouterr().out
    assert "files compared with their hashes" in said
    assert "verified: everything holds" in said


def verify(archive: Path | str, capsys) -> str:
    """Return the output for an archive whose claims do not hold."""
    capsys.readouterr()
    assert main.run(["verify", str(archive)]) == 1
    return capsys.readouterr().out


def test_a_run_without_an_archive_is_verified_without_hashes(run, capsys):
    assert main.run(["verify", str(run.path)]) == 0
    assert "has no hashes" not in capsys.readouterr().out


def test_every_change_since_a_run_was_packed_is_named(run, here, capsys):
    archive = packed(run, here)
    for command in ("report", "packets"):  # commands that only read have been there, too
        assert main.run([command, str(archive)]) == 0
    place = here / "runs" / NAME
    capture = place / "captures" / "r3-proxy-0-eth0.pcap"
    content = bytearray(capture.read_bytes())
    content[-1] ^= 1  # one bit of one packet
    capture.write_bytes(content)
    (place / "captures" / "another.pcap").write_bytes(b"")
    (place / "captures" / "r0-r1@r0.pcap").unlink()
    said = verify(NAME, capsys)
    assert "captures/r3-proxy-0-eth0.pcap: has changed since it was packed" in said
    assert "captures/another.pcap: was not packed" in said
    assert "captures/r0-r1@r0.pcap: was packed, but is missing" in said


def test_a_changed_packet_and_number_are_found_although_hashes_match(run, here, capsys):
    capture = run.captures / "r2-r3@r2.pcap"
    content = capture.read_bytes()
    *_, last = packets_of(content)
    capture.write_bytes(content[:last])
    summary = run.read_summary()
    summary["fidelity"]["capture_drops"] = 7
    found = summary["verdict"]
    summary["verdict"] = "passed" if found != "passed" else "failed"
    run.summary_json.write_text(json.dumps(summary))
    said = verify(packed(run, here), capsys)
    assert "has changed since it was packed" not in said, "the hashes are of what was packed"
    assert "fidelity.links.r2-r3.lost.cut: claimed 3, found 2" in said
    assert "table fidelity: differs from the captures" in said
    assert "fidelity.capture_drops: claimed 7, found 0" in said
    assert f"verdict: claimed {summary['verdict']}, found {found}" in said


def test_one_packet_with_another_time_is_found_by_its_effects(run, here, capsys):
    capture = run.captures / "r2-r3@r3.pcap"
    content = bytearray(capture.read_bytes())
    *_, last = packets_of(content)
    seconds = content[last : last + 4]
    content[last : last + 4] = (int.from_bytes(seconds, sys.byteorder) + 1).to_bytes(4, sys.byteorder)
    capture.write_bytes(content)
    said = verify(packed(run, here), capsys)
    assert "has changed since it was packed" not in said
    assert "fidelity.links.r2-r3.delay_p99_ms: claimed " in said


def packets_of(capture: bytes) -> Iterator[int]:
    """Yield the start of each packet of a capture, with its header."""
    at = 24
    while at < len(capture):
        yield at
        at += 16 + int.from_bytes(capture[at + 8 : at + 12], sys.byteorder)


def test_claims_and_tables_of_an_archive_are_compared_with_the_captures(run, here, capsys):
    archive = packed(run, here)
    assert main.run(["report", str(archive)]) == 0  # a run below runs/ is not mistaken for it

    def forge(place: Path) -> None:
        plant(place, "events.lost", 3)
        plant(place, "verdict", "excellent")
        path = place / "analysis" / "fidelity.parquet"
        table = pq.read_table(path)
        pq.write_table(table.set_column(0, "link", pa.array(["r0-r9"] * table.num_rows)), path)
        (place / "run.json").write_text((place / "run.json").read_text().replace('"seed": 1', '"seed":  1'))

    found = run.read_summary()["events"]["lost"]
    assert found != 3
    said = verify(repacked(archive, forge), capsys)
    assert f"claims.json: events.lost is 3, and should be {found}" in said
    assert "claims.json: verdict is excellent, and should be" in said
    assert "table fidelity: differs from the captures" in said
    assert "run.json: has changed since it was packed" in said
    assert "claimed" not in said, "summary.json is as it was"


@pytest.mark.parametrize("left", ["captures", "summary.json"])
def test_nothing_can_be_verified_without_captures_or_claims(run, here, capsys, left):
    if left == "captures":
        archive = here / "run.tar.zst"
        assert main.run(["export", str(run.path), "--no-captures", "-o", str(archive)]) == 0
        named = str(archive)
    else:
        run.summary_json.unlink()
        named = str(run.path)
    assert main.run(["verify", named]) == 2
    assert len(capsys.readouterr().err.splitlines()) <= 2


def test_an_archive_has_the_hash_of_each_file_and_its_claims(run, here):
    assert main.run(["packets", str(packed(run, here))]) == 0
    place = here / "runs" / NAME
    named = {line.partition("  ")[2] for line in (place / "SHA256SUMS").read_text().splitlines()}
    assert named == {
        str(path.relative_to(place))
        for path in place.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS" and path.suffix != ".index"
    }
    claimed = {each["figure"]: each for each in json.loads((place / "claims.json").read_text())["claims"]}
    assert claimed["verdict"]["value"] == run.read_summary()["verdict"]
    assert claimed["events.lost"]["tolerance"] == 0


def test_an_archive_without_hashes_is_not_verified(run, here, capsys):
    archive = repacked(packed(run, here), lambda place: (place / "SHA256SUMS").unlink())
    assert main.run(["verify", str(archive)]) == 1
    assert "has no hashes" in capsys.readouterr().out


def test_a_foreign_index_is_neither_packed_nor_unpacked(run, here):
    archive = packed(run, here)
    assert list(run.captures.glob("*.index"))
    assert main.run(["packets", str(archive)]) == 0
    indices = [path.name for path in (here / "runs" / NAME / "captures").glob("*.index")]
    assert indices == [], "no command that needs none has made one"
