"""A run is verified from its captures; a change of one packet, one record or one number is found."""

import json
from pathlib import Path

import pytest

from experiments.rundir import RunDirectory
from testbed.cli import main
from tests.analysis.inspect.packets.small_run import around_the_cut

NAME = "20260314T020000Z-around-the-cut-0a1b2c"


@pytest.fixture
def run(tmp_path) -> RunDirectory:
    return around_the_cut().write(tmp_path / "made" / NAME)


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A colleague's folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def packed(run: RunDirectory, here: Path) -> str:
    archive = here / "run.tar.zst"
    assert main.run(["export", str(run.path), "-o", str(archive), "--force"]) == 0
    return str(archive)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_a_run_claims_follows_from_its_captures_and_stays_as_it_is(run, here, capsys):
    archive = packed(run, here)
    assert main.run(["verify", archive]) == 0
    before = contents(here / "runs")
    assert main.run(["verify", NAME]) == 0
    assert contents(here / "runs") == before
    said = capsys.readouterr().out
    assert "files held against their hashes" in said
    assert "verified: everything holds" in said


def test_a_run_that_came_in_no_archive_is_verified_without_hashes(run, capsys):
    assert main.run(["verify", str(run.path)]) == 0
    assert "has no hashes" not in capsys.readouterr().out


def test_one_bit_of_one_packet_is_found(run, here, capsys):
    assert main.run(["verify", packed(run, here)]) == 0
    capture = here / "runs" / NAME / "captures" / "r3-proxy-0-eth0.pcap"
    content = bytearray(capture.read_bytes())
    content[-1] ^= 1
    capture.write_bytes(content)
    assert main.run(["verify", NAME]) == 1
    assert "captures/r3-proxy-0-eth0.pcap: is not as it was packed" in capsys.readouterr().out


def test_a_packet_that_was_left_out_before_packing_is_found_by_what_it_changes(run, here, capsys):
    capture = run.captures / "r3-proxy-0-eth0.pcap"
    capture.write_bytes(capture.read_bytes()[:24])  # a file without packets
    assert main.run(["verify", packed(run, here)]) == 1
    said = capsys.readouterr().out
    assert "is not as it was packed" not in said, "the hashes are of what was packed"
    assert "claimed" in said


def test_one_number_is_found_though_the_hashes_were_made_after_it(run, here, capsys):
    summary = run.read_summary()
    summary["fidelity"]["capture_drops"] = 7
    run.summary_json.write_text(json.dumps(summary))
    assert main.run(["verify", packed(run, here)]) == 1
    said = capsys.readouterr().out
    assert "fidelity.capture_drops: claimed 7, found 0" in said


def test_a_verdict_is_a_claim(run, here, capsys):
    summary = run.read_summary()
    found = summary["verdict"]
    summary["verdict"] = "passed" if found != "passed" else "failed"
    run.summary_json.write_text(json.dumps(summary))
    assert main.run(["verify", packed(run, here)]) == 1
    assert f"verdict: claimed {summary['verdict']}, found {found}" in capsys.readouterr().out


def test_what_is_missing_and_what_was_not_packed_is_named(run, here, capsys):
    assert main.run(["verify", packed(run, here)]) == 0
    place = here / "runs" / NAME
    (place / "captures" / "another.pcap").write_bytes(b"")
    gone = next(path for path in sorted((place / "analysis").rglob("*.parquet")) if path.is_file())
    gone.unlink()
    assert main.run(["verify", NAME]) == 1
    said = capsys.readouterr().out
    assert "captures/another.pcap: was not packed" in said
    assert f"{gone.relative_to(place)}: was packed, and is not there" in said


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


def test_the_archive_describes_itself(run, here):
    assert main.run(["verify", packed(run, here)]) == 0
    place = here / "runs" / NAME
    graph = {
        each["@id"]: each for each in json.loads((place / "ro-crate-metadata.json").read_text())["@graph"]
    }
    assert graph["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    named = {part["@id"] for part in graph["./"]["hasPart"]}
    assert named == {
        str(path.relative_to(place))
        for path in place.rglob("*")
        if path.is_file() and path.name != "ro-crate-metadata.json"
    }
    assert graph["captures/r3-proxy-0-eth0.pcap"]["encodingFormat"] == "application/vnd.tcpdump.pcap"
    assert graph["#run"]["instrument"] == {"@id": "#cutset"}
    claimed = {each["figure"]: each for each in json.loads((place / "claims.json").read_text())["claims"]}
    assert claimed["verdict"]["value"] == run.read_summary()["verdict"]
    assert claimed["events.lost"]["tolerance"] == 0
