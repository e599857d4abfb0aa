"""`cutset packets --pcap`: the packets of a small run around a cut, as Wireshark's tools read them."""

import subprocess
from pathlib import Path

import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli.main import run as cutset
from tests.analysis.inspect.packets.small_run import around_the_cut

TIME_ZERO = "run a-run; time 0 is 2023-11-14T22:13:20.000000000Z (1700000000.000000000 s since 1970)"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return around_the_cut().write(tmp_path_factory.mktemp("runs") / "a-run")


def written(run: RunDirectory, path: Path, *options: str) -> list[tuple[str, str, str]]:
    """Return interface, milliseconds since time 0 and TCP payload bytes of each packet, as tshark reads
    them.
    """
    assert cutset(["packets", str(run.path), "--pcap", str(path), *options]) == 0
    fields = ("frame.interface_name", "frame.time_epoch", "tcp.len")
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *(o for f in fields for o in ("-e", f))]
    read = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in read.splitlines()]
    return [(name, f"{(float(t) - 1_700_000_000) * 1000:.1f}", size) for name, t, size in rows]


def test_the_packets_of_a_message_come_from_every_capture(run, tmp_path, capsys):
    lost = [
        ("r2-proxy-0-eth0", "5010.0", "80"),
        ("r2-proxy-0-eth0", "5010.0", "66"),
        ("r2-r3@r2", "5011.0", "80"),
        ("r2-r3@r2", "5011.0", "66"),
        ("r2-proxy-0-eth0", "5260.0", "146"),
        ("r2-r3@r2", "5261.0", "146"),
    ]
    path = tmp_path / "lost.pcapng"
    assert written(run, path, "--lost") == lost
    assert capsys.readouterr().err == (
        f"6 packets of 2 captures in {path}\n{TIME_ZERO}\nWireshark names its messages with: "
        "cutset dissector --system sprinkler -o sprinkler.lua; "
        f"wireshark -X lua_script:sprinkler.lua {path}\n"
    )
    assert list(tmp_path.iterdir()) == [path]


def test_filters_on_time_and_place_alone_take_every_packet(run, tmp_path):
    everything = written(run, tmp_path / "all.pcapng")
    assert len(everything) == sum(map(len, around_the_cut().records.values()))
    assert [float(t) for _, t, _ in everything] == sorted(float(t) for _, t, _ in everything)
    opening = ("r3-client-0-eth0", "4915.0", "0"), ("r3-proxy-0-eth0", "4917.0", "0")
    asking = ("r3-client-0-eth0", "4960.2", "20"), ("r3-proxy-0-eth0", "4962.2", "20")
    assert written(run, tmp_path / "one.pcapng", "--host", "r3-client-0") == [*opening, *asking]
    over = written(run, tmp_path / "link.pcapng", "--link", "r2-r3", "--from", "5")
    assert {name for name, _, _ in over} == {"r2-proxy-0-eth0", "r2-r3@r2"}
    assert len(over) == 6


@pytest.mark.parametrize(
    ("place", "capture"),
    [
        ("r2-proxy-0", "r2-proxy-0-eth0"),
        ("r2/proxy-0", "r2-proxy-0-eth0"),
        ("r2-proxy-0-eth0", "r2-proxy-0-eth0"),
        ("r2-r3@r2", "r2-r3@r2"),
    ],
)
def test_one_place_has_only_its_own_packets(run, tmp_path, capsys, place, capture):
    path = tmp_path / "one.pcapng"
    everything = written(run, tmp_path / "all.pcapng", "--to", "5")
    capsys.readouterr()
    assert written(run, path, "--to", "5", "--at", place) == [row for row in everything if row[0] == capture]
    assert f"of 1 capture in {path}" in capsys.readouterr().err


def retransmissions_by_tshark(path: Path) -> int:
    command = ["tshark", "-n", "-r", str(path), "-Y", "tcp.analysis.retransmission"]
    return len(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())


def test_wireshark_finds_no_retransmission_that_no_capture_has(run, tmp_path):
    moment = ("--link", "r2-r3", "--to", "5")
    written(run, tmp_path / "all.pcapng", *moment)
    assert retransmissions_by_tshark(tmp_path / "all.pcapng") > 0
    assert len(written(run, tmp_path / "one.pcapng", *moment, "--at", "r3-proxy-0")) == 3
    assert retransmissions_by_tshark(tmp_path / "one.pcapng") == 0


def test_no_file_is_written_without_matching_packets(run, tmp_path, capsys):
    path = tmp_path / "none.pcapng"
    assert cutset(["packets", str(run.path), "--pcap", str(path), "--from", "-9", "--to", "-8"]) == 0
    assert capsys.readouterr().err == f"no packet matches: {path} is not written\n"
    assert list(tmp_path.iterdir()) == []


def test_packets_can_go_to_standard_output(run, capfdbinary):
    assert cutset(["packets", str(run.path), "--lost", "--pcap", "-"]) == 0
    said = capfdbinary.readouterr()
    assert said.out[:4] == b"\x0a\x0d\x0d\x0a"
    assert said.err.decode() == f"6 packets of 2 captures in standard output\n{TIME_ZERO}\n"
    about = subprocess.run(["capinfos", "-"], input=said.out, check=True, capture_output=True).stdout.decode()
    assert f"Capture comment:     {TIME_ZERO}\n" in about
