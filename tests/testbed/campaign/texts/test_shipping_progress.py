"""The progress of file transfers as the user sees it."""

import sys
import threading
from types import SimpleNamespace

import pytest

from testbed.campaign.texts import progress as shown
from testbed.campaign.texts.progress import Follower, LiveFollower
from testbed.campaign.texts.shipping_progress import MachineFiles, ShippingProgress
from testbed.machines.shipping.result import ShippingState

MB = 10**6


def progress(
    state: ShippingState, got_mb: float, of_mb: float = 300, machine: str = "h0", note: str = ""
) -> dict[str, object]:
    sizes = {"bytes": got_mb, "of_bytes": of_mb, "wire_bytes": got_mb / 10}
    found = {name: round(size_mb * MB) for name, size_mb in sizes.items()}
    return {"did": "shipping", "machine": machine, "state": str(state), "note": note, **found}


def test_a_machines_text_has_progress_rate_and_remaining_time():
    files = MachineFiles("h0")
    files.take(progress(ShippingState.SHIPPING, 80))
    assert " ".join(files.text(20 * MB).split()) == "h0 shipping 80 of 300 MB 20 MB/s 11 s left"


def test_broken_and_completed_transfers_are_reported_once():
    so_far = ShippingProgress()
    messages = [
        progress(ShippingState.SHIPPING, 10),
        progress(ShippingState.WAITING, 10, note="the connection is lost"),
        progress(ShippingState.WAITING, 10, note="the connection is lost"),
        progress(ShippingState.SHIPPING, 20),
        progress(ShippingState.SHIPPED, 300),
    ]
    assert [so_far.take(message) for message in messages] == [
        None,
        "h0: trying again: the connection is lost; 290 MB are left there",
        None,
        None,
        "h0: all its files are here: 300 MB, sent as 30 MB",
    ]


def test_a_machine_that_is_given_up_leaves_a_line_with_its_progress():
    so_far = ShippingProgress()
    line = so_far.take(progress(ShippingState.GIVEN_UP, 100, note="h0: cannot be reached"))
    assert line == "h0: given up: h0: cannot be reached; 200 MB are left there"


def test_plain_lines_show_ends_and_periodic_progress(capsys, monkeypatch):
    monkeypatch.setattr(shown, "time", SimpleNamespace(monotonic=lambda: 1000.0))  # it does not advance
    with Follower() as follow:
        for got_mb in range(0, 300, 10):
            follow(progress(ShippingState.SHIPPING, got_mb))
        follow(progress(ShippingState.SHIPPED, 300))
    passing, last = capsys.readouterr().err.splitlines()
    assert "h0" in passing
    assert last == "h0: all its files are here: 300 MB, sent as 30 MB"


def test_on_a_terminal_every_awaited_machine_has_a_bar():
    follow = LiveFollower()
    follow(progress(ShippingState.SHIPPING, 100))
    follow(progress(ShippingState.SHIPPING, 50, machine="h1"))
    follow(progress(ShippingState.SHIPPED, 300, machine="h2"))
    _, *bars = follow._progress.tasks
    assert [(bar.completed, bar.total, bar.visible) for bar in bars] == [
        (100 * MB, 300 * MB, True),
        (50 * MB, 300 * MB, True),
        (300 * MB, 300 * MB, False),
    ]


@pytest.mark.parametrize("kind", [Follower, LiveFollower])
def test_a_run_is_followed_while_machines_come_up_in_other_threads(kind):
    """Report progress from separate threads, as shipping machines do."""
    machines = 3000
    follow, done = kind(), threading.Event()

    def ship() -> None:
        try:
            for number in range(machines):
                follow(progress(ShippingState.CONNECTING, 0, 0, machine=f"h{number}"))
        finally:
            done.set()

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread = threading.Thread(target=ship)
        thread.start()
        while not done.is_set():
            follow({})
        thread.join()
    finally:
        sys.setswitchinterval(interval_s)
    assert len(follow._situation.shipped.machines) == machines
