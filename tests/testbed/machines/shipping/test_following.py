"""Files that change while they are shipped: they grow, are replaced, or differ from before."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.machines.shipping.receiver import ship
from testbed.machines.shipping.result import FileOutcome, ShippingResult
from tests.testbed.machines.shipping.machines import QUICK, Machine, noise, ship_all, write_files

MIB = 1 << 20


class Following:
    """Ships a machine in a thread while its run goes on, until `finish`. Steps wait for arrived data."""

    def __init__(self, machine: Machine, run: Path) -> None:
        run.mkdir()
        self._over = threading.Event()
        self._told = threading.Condition()
        self._last: dict[str, Any] | None = None
        self._result: dict[str, ShippingResult] = {}
        self._thread = threading.Thread(target=self._ship, args=(machine, run))
        self._thread.start()

    def wait_for(self, reached: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until the receiver reports this."""
        with self._told:
            assert self._told.wait_for(lambda: self._last is not None and reached(self._last), 60)

    def wait_for_bytes(self, size: int) -> None:
        """Wait until this number of bytes is here, and none is in flight."""
        self.wait_for(lambda progress: progress["bytes"] == size == progress["of_bytes"])

    def finish(self) -> ShippingResult:
        """End the run and return the result."""
        self._over.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self._result["h0"]

    def _ship(self, machine: Machine, run: Path) -> None:
        self._result = ship(
            [machine],
            run,
            limits=QUICK,
            listener=self._listen,
            stop_following=lambda _: self._over.is_set(),
        )

    def _listen(self, progress: dict[str, Any]) -> None:
        with self._told:
            self._last = progress
            self._told.notify_all()


def test_files_that_grow_are_followed_until_the_run_is_over(tmp_path: Path) -> None:
    there, here = tmp_path / "h0/captures/a.pcap", tmp_path / "run/captures/a.pcap"
    content = noise(3 * MIB)
    write_files(tmp_path / "h0", {"captures/a.pcap": content[:1000]})
    following = Following(Machine("h0", tmp_path / "h0"), tmp_path / "run")
    following.wait_for_bytes(1000)
    with there.open("ab") as file:
        file.write(content[1000:MIB])
        file.flush()
        following.wait_for_bytes(MIB)
        assert here.read_bytes() == content[:MIB]
        file.write(content[MIB:])
    write_files(tmp_path / "h0", {"logs/late.jsonl": b"{}"})
    shipped = following.finish()
    assert here.read_bytes() == content
    assert (tmp_path / "run/logs/late.jsonl").read_bytes() == b"{}"
    assert shipped.complete
    assert not any(file.changed for file in shipped.files)
    assert shipped.wire_bytes < 3 * MIB + 20_000


def test_broken_connections_are_reopened_as_long_as_the_run_goes_on(tmp_path: Path) -> None:
    """Use any patience: it counts only from the run's end."""
    write_files(tmp_path / "h0", {"captures/a.pcap": noise(MIB)})
    machine = Machine("h0", tmp_path / "h0", cuts=[0] * 20)
    following = Following(machine, tmp_path / "run")
    following.wait_for_bytes(MIB)
    assert following.finish().complete


def test_a_replaced_file_is_shipped_again_and_never_seen_in_part(tmp_path: Path) -> None:
    there, here = tmp_path / "h0/run.json", tmp_path / "run/machines/h0/run.json"
    write_files(tmp_path / "h0", {"run.json": b'{"phase": "building"}'})
    following = Following(Machine("h0", tmp_path / "h0"), tmp_path / "run")
    following.wait_for_bytes(21)
    for content in (b'{"phase": "running", "more": 1}', b"{}", b'{"phase": "over"}'):
        new = there.with_name(".run.json.7.tmp")
        new.write_bytes(content)
        new.replace(there)
        following.wait_for_bytes(len(content))
        assert here.read_bytes() == content
    shipped = following.finish()
    assert shipped.complete
    assert not shipped.files[0].changed, "a file in another's place is nothing to warn of"


def test_a_rewritten_file_is_detected(tmp_path: Path) -> None:
    """Let a file grow while a byte changes that was shipped long before."""
    there, here = tmp_path / "h0/captures/a.pcap", tmp_path / "run/captures/a.pcap"
    write_files(tmp_path / "h0", {"captures/a.pcap": noise(MIB)})
    following = Following(Machine("h0", tmp_path / "h0"), tmp_path / "run")
    following.wait_for_bytes(MIB)
    with there.open("r+b") as file:
        file.write(b"CHANGED")
        file.seek(0, os.SEEK_END)
        file.write(b"more")
    shipped = following.finish()
    assert here.read_bytes() == there.read_bytes()
    assert shipped.complete
    assert shipped.lines() == [
        "h0: captures/a.pcap changed here or there after it was shipped: shipped again"
    ]
    assert shipped.shipment().changed == ("captures/a.pcap",)


def test_files_deleted_on_the_machine_stay_here(tmp_path: Path) -> None:
    write_files(tmp_path / "h0", {"captures/a.pcap": b"packets", "run.json": b"{}"})
    following = Following(Machine("h0", tmp_path / "h0"), tmp_path / "run")
    following.wait_for_bytes(9)
    (tmp_path / "h0/captures/a.pcap").unlink()
    shipped = following.finish()
    assert (tmp_path / "run/captures/a.pcap").read_bytes() == b"packets"
    assert [(file.became, file.note) for file in shipped.files] == [
        (FileOutcome.PARTIAL, "it was removed on the machine"),
        (FileOutcome.WHOLE, ""),
    ]


def test_incomplete_files_and_non_files_are_not_shipped(tmp_path: Path) -> None:
    there = write_files(tmp_path / "h0", {"run.json": b"{}", ".run.json.7.tmp": b"{", "logs/bad\nname": b"x"})
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    (there / "captures").symlink_to(tmp_path)
    (there / "logs/secret").symlink_to(secret)
    os.mkfifo(there / "logs/pipe")
    shipped = ship_all(tmp_path / "run", Machine("h0", there))["h0"]
    assert [file.path for file in shipped.files] == ["run.json"]
