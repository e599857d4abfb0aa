"""Programs that use TLS, on real packets, decrypted with the keys that they log."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from experiments.records.key_log import client_randoms
from experiments.records.rundir import RunDirectory
from testbed.cli import main
from tests.analysis.capture.tls.speaking import certificate
from tests.systems.on_packets import run_on_packets

pytestmark = [pytest.mark.network, pytest.mark.slow]
EXPERIMENT = """\
name: tls-relay
topology: two-regions
system: ./relay
roles: {r0: {broker: 1, publisher: 1}, r1: {broker: 1, subscriber: 2}}
workload: {event_size: 100B, rate: 50/s}
duration: 4s
faults:
  - {name: cut, at: 1s, cut: [r0, r1], for: 500ms}
  - {name: end, at: 2500ms, kill: r1/subscriber-0}
  - {name: again, at: 3s, restart: r1/subscriber-0}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> RunDirectory:
    """Make a run with its keys, which no test changes."""
    folder = tmp_path_factory.mktemp("tls")
    shutil.copytree(Path(__file__).parent / "tls_relay", folder / "relay")
    certificate(folder / "relay")
    return run_on_packets(folder, EXPERIMENT)


def test_decrypted_packets_agree_with_the_clients_records(made, capsys):
    summary = made.read_summary()
    assert summary["events"]["published"] > 150
    assert summary["events"]["duplicated"] == summary["events"]["stray"] == 0
    assert summary["agreement"]["held"] is True
    assert summary["agreement"]["compared"] >= 1
    assert summary["recovery"]["cut"]["switch_s"] > 0.5, "nothing came while the link was down"
    assert not any("not known here" in problem for problem in summary["problems"])
    capsys.readouterr()
    assert main.run(["follow", str(made.path), "r0", "10"]) == 0
    assert "r0-broker-0 -> r1-broker-0" in capsys.readouterr().out
    assert main.run(["packets", str(made.path), "--limit", "1", "--raw"]) == 0
    assert "encrypted" in capsys.readouterr().out


def test_keys_of_all_process_generations_are_beside_the_captures_for_their_owner_alone(made):
    assert stat.S_IMODE(made.key_log.stat().st_mode) == 0o600
    assert len(client_randoms(made.key_log)) == 2 + 3 + 1, (
        "of two peers' links and three clients, one of them twice"
    )
    assert not list(made.path.glob("programs/*/tls-keys*"))


def test_wireshark_gets_keys_and_names_of_processes(made, tmp_path, capsys):
    path = tmp_path / "one.pcapng"
    at = ["--at", "r0-broker-0"]
    assert main.run(["packets", str(made.path), "--type", "NEW_EVENT", *at, "--pcap", str(path)]) == 0
    comments = shown(path, "frame.comment")
    assert {comment.split(" port ")[0] for comment in comments} == {"r0/publisher-0"}
    assert all(comment.endswith(" -> r0/broker-0 port 4500") for comment in comments)
    whole = tmp_path / "whole.pcapng"
    assert main.run(["packets", str(made.path), "--at", "r1-broker-0", "--pcap", str(whole)]) == 0
    plain = {bytes.fromhex(each) for packet in shown(whole, "data.data") for each in packet.split(",")}
    assert b"subscribe\n" in plain
    assert main.run(["export", str(made.path), "--no-keys", "-o", str(tmp_path / "a.tar.zst")]) == 0


def shown(path: Path, field: str) -> list[str]:
    """Return a field of all packets, from tshark without options."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", field]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text.splitlines()


def test_without_keys_of_some_connections_events_rest_on_records(made, tmp_path, capsys):
    run = RunDirectory(shutil.copytree(made.path, tmp_path / made.name))
    before = run.read_summary()["events"]
    lines = run.key_log.read_text().splitlines(keepends=True)
    missing = lines[-1].split()[1]
    run.key_log.write_text("".join(line for line in lines if missing not in line))
    capsys.readouterr()
    assert main.run(["analyze", str(run.path)]) in {0, 1}
    said = capsys.readouterr().out
    why = "1 connection was not read: the key log has no keys of the TLS connection"
    assert f"the messages of tls-relay are not known here ({why}): events come from the records" in said
    assert run.read_summary()["events"] == before
    assert run.read_summary()["agreement"]["held"] is None
    for command in (["follow", str(run.path), "r0", "10"], ["packets", str(run.path)]):
        assert main.run(command) == 2
        assert why in capsys.readouterr().err
    run.key_log.unlink()
    assert main.run(["analyze", str(run.path)]) in {0, 1}
    assert "not read: no key log of TLS connections was kept" in capsys.readouterr().out
