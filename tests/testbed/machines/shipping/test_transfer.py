"""The next requests of a transfer, and the meaning of answers, without a stream."""

from pathlib import Path

import pytest

from testbed.machines.shipping.frames import ShippingError
from testbed.machines.shipping.limits import DiskBudget
from testbed.machines.shipping.messages import FileEntry, Hash, Listing, Read
from testbed.machines.shipping.result import FileOutcome
from testbed.machines.shipping.transfer import TRIES_MAX, FileTransfer

CHUNK = 100
WRONG = bytes(32)


def transfer(run: Path, machine: str = "h0", claims: dict[str, str] | None = None) -> FileTransfer:
    """Return the transfer of a machine that has sent nothing yet."""
    return FileTransfer(machine, run, {} if claims is None else claims, DiskBudget(run, None, 0))


def listing(*entries: FileEntry, gone: tuple[str, ...] = ()) -> Listing:
    """One that is whole."""
    return Listing(entries, gone, more=False)


def entry(size: int, path: str = "captures/a.pcap", identity: int = 1) -> FileEntry:
    """Return the entry of a file."""
    return FileEntry(path, size, identity)


def take_all(of: FileTransfer, content: bytes) -> None:
    """Answer every READ from the content."""
    while isinstance(request := of.next(CHUNK), Read):
        assert of.took(of.asked(request), content[request.offset : request.offset + request.length])


def test_a_file_is_read_in_chunks_and_compared_once_the_run_is_over(tmp_path: Path) -> None:
    of = transfer(tmp_path)
    of.listed(listing(entry(250)))
    asked = [of.asked(request) for _ in range(3) if (request := of.next(CHUNK))]
    assert [one.request for one in asked] == [
        Read("captures/a.pcap", 0, 100),
        Read("captures/a.pcap", 100, 100),
        Read("captures/a.pcap", 200, 50),
    ]
    assert of.next(CHUNK) is None
    for one in asked:
        of.took(one, bytes(one.request.length if isinstance(one.request, Read) else 0))
    assert of.next(CHUNK) is None, "it may still grow"
    of.run_is_over()
    assert of.next(CHUNK) == Hash("captures/a.pcap", 250)


def test_a_file_that_never_agrees_is_given_up(tmp_path: Path) -> None:
    of = transfer(tmp_path)
    of.run_is_over()
    of.listed(listing(entry(250)))
    for _ in range(TRIES_MAX):
        take_all(of, bytes(250))
        request = of.next(CHUNK)
        assert isinstance(request, Hash)
        of.digest(of.asked(request), WRONG)
    assert of.next(CHUNK) is None
    (file,) = of.outcome()
    assert (file.became, file.note) == (FileOutcome.PARTIAL, "it keeps changing")


def test_answers_about_a_file_that_was_replaced_meanwhile_are_not_used(tmp_path: Path) -> None:
    of = transfer(tmp_path)
    of.listed(listing(entry(200)))
    first, second = (of.asked(request) for _ in range(2) if (request := of.next(CHUNK)))
    assert of.took(first, b"1" * 100)
    of.listed(listing(entry(200, identity=2)))
    assert not of.took(second, b"2" * 100)
    take_all(of, b"3" * 200)
    assert (tmp_path / "captures/a.pcap").read_bytes() == b"3" * 200


def test_a_new_connection_is_asked_for_nothing_before_it_told_what_it_has(tmp_path: Path) -> None:
    of = transfer(tmp_path)
    of.listed(listing(entry(200)))
    request = of.next(CHUNK)
    assert request
    of.asked(request)
    of.connected()
    assert of.next(CHUNK) is None
    of.listed(listing(entry(200)))
    assert of.next(CHUNK) == request


def test_a_file_that_a_new_connection_does_not_have_is_gone(tmp_path: Path) -> None:
    of = transfer(tmp_path)
    of.listed(listing(entry(200)))
    of.connected()
    of.listed(listing())
    assert not of.stale
    assert of.outcome()[0].note == "it was removed on the machine"


def test_two_machines_cannot_ship_to_the_same_place(tmp_path: Path) -> None:
    claims: dict[str, str] = {}
    first, second = transfer(tmp_path, "h0", claims), transfer(tmp_path, "h1", claims)
    first.listed(listing(entry(10)))
    second.listed(listing(entry(20)))
    take_all(first, b"first file")
    for _ in range(2):
        assert second.next(CHUNK) is None
        second.connected()
        second.listed(listing(entry(30)))
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
    of.run_is_over()
    names = ("captures/a.pcap", "logs/a.jsonl", "captures/link.pcap", "captures/b.pcap")
    of.listed(listing(*(entry(10, name) for name in names)))
    asked = []
    while request := of.next(CHUNK):
        if isinstance(request, Hash):
            break
        one = of.asked(request)
        asked.append(one.request.path)
        of.took(one, b"ten bytes!")
    became = {file.path: file.became for file in of.outcome()}
    assert became == {
        "captures/a.pcap": FileOutcome.MISSING,
        "logs/a.jsonl": FileOutcome.MISSING,
        "captures/link.pcap": FileOutcome.MISSING,
        "captures/b.pcap": FileOutcome.PARTIAL,
    }
    assert (tmp_path / "captures/b.pcap").read_bytes() == b"ten bytes!"
    assert outside.read_bytes() == b""


def test_a_machine_cannot_list_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.machines.shipping.transfer.FILES_MAX", 10)
    of = transfer(tmp_path)
    with pytest.raises(ShippingError, match="more than"):
        of.listed(listing(*(entry(0, f"notes/{number}") for number in range(11))))
