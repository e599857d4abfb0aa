"""The next requests of a transfer, and the meaning of answers, without a stream."""

from pathlib import Path

from testbed.machines.shipping.limits import DiskBudget
from testbed.machines.shipping.protocol import FileEntry, Read
from testbed.machines.shipping.result import FileOutcome
from testbed.machines.shipping.transfer import TRIES_MAX, FileTransfer

WRONG = bytes(32)


def transfer(run: Path, machine: str = "h0", claims: dict[str, str] | None = None) -> FileTransfer:
    """Return the transfer of a machine that has sent nothing yet."""
    return FileTransfer(machine, run, {} if claims is None else claims, DiskBudget(run, None, 0))


def entry(size: int, path: str = "captures/a.pcap", identity: int = 1) -> FileEntry:
    """Return the entry of a file."""
    return FileEntry(path, size, identity)


def reads(of: FileTransfer) -> list[Read]:
    """Return all requests of this pass."""
    return list(of.reads(lambda: 100))


def test_a_file_that_never_agrees_is_given_up(tmp_path: Path) -> None:
    of, passes = transfer(tmp_path), 0
    while not passes or of.needs_pass:
        of.listed([entry(250)], over=True)
        assert [(read.offset, read.length) for read in reads(of)] == [(0, 100), (100, 100), (200, 50)]
        for read in reads(of):
            of.took(read, bytes(read.length))
        (asked,) = of.hashes()
        of.digest(asked, WRONG)
        passes += 1
    assert passes == TRIES_MAX
    (file,) = of.outcome()
    assert (file.became, file.note) == (FileOutcome.PARTIAL, "it keeps changing")


def test_answers_about_a_file_that_was_replaced_meanwhile_are_not_used(tmp_path: Path) -> None:
    of = transfer(tmp_path)
    of.listed([entry(200)], over=False)
    first, second = reads(of)
    of.changed(first)
    assert not of.took(second, b"2" * 100)
    of.listed([entry(200, identity=2)], over=False)
    for read in reads(of):
        assert of.took(read, b"3" * 100)
    assert (tmp_path / "captures/a.pcap").read_bytes() == b"3" * 200


def test_two_machines_cannot_ship_to_the_same_place(tmp_path: Path) -> None:
    claims: dict[str, str] = {}
    first, second = transfer(tmp_path, "h0", claims), transfer(tmp_path, "h1", claims)
    first.listed([entry(10)], over=False)
    (read,) = reads(first)
    first.took(read, b"first file")
    for _ in range(2):
        second.connected()
        second.listed([entry(30)], over=True)
        assert reads(second) == []
        assert list(second.hashes()) == []
        assert not second.needs_pass
    assert (tmp_path / "captures/a.pcap").read_bytes() == b"first file"
    (file,) = second.outcome()
    assert (file.became, file.note) == (FileOutcome.MISSING, "h0 also has a file of that name")


def test_a_file_that_cannot_be_written_blocks_no_others(tmp_path: Path) -> None:
    (tmp_path / "captures/a.pcap").mkdir(parents=True)
    (tmp_path / "logs").write_bytes(b"no folder")
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    (tmp_path / "captures/link.pcap").symlink_to(outside)
    of = transfer(tmp_path)
    names = ("captures/a.pcap", "logs/a.jsonl", "captures/link.pcap", "captures/b.pcap")
    of.listed([entry(10, name) for name in names], over=True)
    assert [of.took(read, b"ten bytes!") for read in reads(of)] == [False, False, False, True]
    assert [asked.path for asked in of.hashes()] == ["captures/b.pcap"]
    assert {file.path for file in of.outcome() if file.became is FileOutcome.PARTIAL} == {"captures/b.pcap"}
    assert (tmp_path / "captures/b.pcap").read_bytes() == b"ten bytes!"
    assert outside.read_bytes() == b""
