"""Files shipped over breaking connections are complete, and no byte is sent twice."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from experiments.records.observations import UnshippedFile
from testbed.machines.shipping import limits
from testbed.machines.shipping.names import AGAIN
from testbed.machines.shipping.result import FileOutcome
from tests.testbed.machines.shipping.machines import (
    Machine,
    ProcessStream,
    noise,
    read_files,
    ship_all,
    write_files,
)

MIB = 1 << 20
PATIENT = limits.ShippingLimits(retry_s=0.0)
FILES = {
    "captures/r0-proxy-0-eth0.pcap": noise(70_000),
    "captures/r0-r1@r0.pcap": b"\0" * 300_000,
    "logs/r0-proxy-0.jsonl": b"",
    "storage/r0-proxy-0/log/1": b"kept",
    "run.json": b"{}",
}


def placed(files: dict[str, bytes], machine: str) -> dict[str, bytes]:
    """Return files by their expected paths: files of one machine only are in its own folder."""
    return {path if "/" in path else f"machines/{machine}/{path}": files[path] for path in files}


def test_files_of_several_machines_arrive_in_one_directory(tmp_path: Path) -> None:
    here, there = FILES, {"captures/r1-proxy-0-eth0.pcap": b"another", "run.json": b"{2}", "notes/a/b": b"n"}
    machines = (
        Machine("h0", write_files(tmp_path / "h0", here)),
        Machine("h1", write_files(tmp_path / "h1", there)),
    )
    shipped = ship_all(tmp_path / "run", *machines)
    expected = placed(here, "h0") | placed(there, "h1") | {"machines/h1/notes/a/b": b"n"}
    del expected["notes/a/b"]
    assert read_files(tmp_path / "run") == expected
    assert shipped["h0"].complete
    assert shipped["h1"].complete
    assert shipped["h0"].lines() == []


@given(cuts=st.lists(st.integers(1, 75_000), max_size=8))
def test_connections_may_break_at_any_byte(cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as destination:
        there = write_files(Path(destination, "h0"), FILES)
        shipped = ship_all(Path(destination, "run"), Machine("h0", there, cuts), limits=PATIENT)
        assert read_files(Path(destination, "run")) == placed(FILES, "h0")
        assert shipped["h0"].complete
        assert shipped["h0"].connections <= len(cuts) + 1


def test_a_receiver_resumes_where_the_killed_one_stopped(tmp_path: Path) -> None:
    """Provide only the part of the file that arrived."""
    content = noise(5 * MIB)
    there = write_files(tmp_path / "h0", {"captures/a.pcap": content})
    here = write_files(tmp_path / "run", {"captures/a.pcap": content[: 2 * MIB + 12_345]})
    shipped = ship_all(here, Machine("h0", there))["h0"]
    assert (here / "captures/a.pcap").read_bytes() == content
    assert shipped.complete
    assert not shipped.files[0].changed
    assert shipped.wire_bytes < 3 * MIB + 10_000


def test_complete_local_files_are_only_checked(tmp_path: Path) -> None:
    there = write_files(tmp_path / "h0", {"captures/a.pcap": noise(5 * MIB)})
    ship_all(tmp_path / "run", Machine("h0", there))
    again = ship_all(tmp_path / "run", Machine("h0", there))["h0"]
    assert again.complete
    assert again.wire_bytes < 10_000


def test_the_sender_program_ships_files(tmp_path: Path) -> None:
    there = write_files(tmp_path / "h0", FILES)
    shipped = ship_all(tmp_path / "run", Machine("h0", there, [50_000], start=ProcessStream.to))
    assert read_files(tmp_path / "run") == placed(FILES, "h0")
    assert shipped["h0"].complete


def test_files_missing_from_a_dead_machine_are_reported(tmp_path: Path) -> None:
    there = write_files(
        tmp_path / "h0",
        {"captures/a.pcap": noise(3 * MIB), "captures/b.pcap": noise(3 * MIB), "captures/c.pcap": b"c"},
    )
    shipped = ship_all(tmp_path / "run", Machine("h0", there, [5 * MIB], dies=True))["h0"]
    a, b, c = shipped.files
    assert (a.became, a.bytes) == (
        FileOutcome.PARTIAL,
        3 * MIB,
    )  # but nothing says that they are the same
    assert b.became is FileOutcome.PARTIAL
    assert 0 < b.bytes < 3 * MIB
    assert (c.became, c.bytes, c.of_bytes) == (FileOutcome.MISSING, 0, 1)
    assert not shipped.complete
    assert "no listener" in shipped.problem
    assert (tmp_path / "run/captures/b.pcap").stat().st_size == b.bytes
    assert shipped.lines()[-1] == "h0: captures/c.pcap is missing, 1 bytes"
    assert shipped.shipment().missing == (UnshippedFile("captures/c.pcap", 0, 1, ""),)


def test_differing_local_files_are_shipped_again(tmp_path: Path) -> None:
    """Include a file that differs only at its beginning, which the bytes before the end do not show."""
    content = noise(2 * MIB)
    there = write_files(tmp_path / "h0", {"captures/a.pcap": content, "captures/b.pcap": content})
    write_files(
        tmp_path / "run",
        {"captures/a.pcap": b"X" + content[1:MIB], "captures/b.pcap": content[:MIB] + b"too long" * MIB},
    )
    shipped = ship_all(tmp_path / "run", Machine("h0", there))["h0"]
    assert shipped.complete
    assert [file.changed for file in shipped.files] == [True, True]
    assert set(read_files(tmp_path / "run").values()) == {content}
    assert not list(tmp_path.rglob(f"*{AGAIN}"))


def test_progress_has_arrived_and_remaining_bytes(tmp_path: Path) -> None:
    there, told = write_files(tmp_path / "h0", FILES), []
    ship_all(tmp_path / "run", Machine("h0", there), listener=told.append)
    size = sum(map(len, FILES.values()))
    last = told[-1]
    assert (last["state"], last["bytes"], last["of_bytes"]) == ("shipped", size, size)
    assert 0 < last["wire_bytes"] < size / 2  # most of it is zeros
    assert told[0]["state"] == "connecting"


def test_a_dead_machine_blocks_no_others(tmp_path: Path) -> None:
    there = write_files(tmp_path / "h1", FILES)
    shipped = ship_all(tmp_path / "run", Machine("h0", tmp_path / "h0", dies=True), Machine("h1", there))
    assert shipped["h1"].complete
    assert shipped["h0"].lines() == [f"h0: nothing was shipped: {shipped['h0'].problem}"]
