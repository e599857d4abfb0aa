"""The control channel."""

import time

import pytest

from testbed.errors import TestbedError
from testbed.sandbox import channel
from testbed.sandbox.channel import FD_VARIABLE, SandboxChannel


@pytest.fixture
def ends():
    ours, theirs = SandboxChannel.pair()
    return SandboxChannel(ours), SandboxChannel(theirs)


def test_messages_arrive_whole_and_in_order(ends):
    ours, theirs = ends
    for number in range(100):
        assert ours.post({"number": number, "text": "x" * 1000 if number % 2 else ""})
        received = theirs.receive(1)
        assert received is not None
        assert received["number"] == number


def test_a_receive_without_messages_times_out(ends):
    ours, _ = ends
    assert ours.receive(0) is None
    assert not ours.ended


def test_the_end_of_the_other_side_is_detected(ends):
    ours, theirs = ends
    theirs.post({"last": True})
    theirs.close()
    assert ours.receive(1) == {"last": True}
    assert ours.receive(1) is None
    assert ours.ended
    assert not ours.post({"to": "nobody"})


def test_a_side_that_does_not_read_cannot_stall_the_other(ends):
    ours, theirs = ends
    posted = 0
    while ours.post({"text": "x" * 1000}):
        posted += 1
        assert posted < 100_000
    assert theirs.receive(0) is not None
    assert ours.post({"text": "again"})


def test_outside_of_a_sandbox_there_is_no_channel(monkeypatch):
    monkeypatch.delenv(FD_VARIABLE, raising=False)
    with pytest.raises(TestbedError, match="only inside a sandbox"):
        SandboxChannel.inherited()


def test_a_side_whose_signs_of_life_stop_counts_as_hanging(ends, monkeypatch):
    ours, theirs = ends
    monkeypatch.setattr(channel, "SILENCE_S", 0.3)
    assert theirs.post({})
    assert ours.receive(1) == {}
    time.sleep(0.4)
    assert theirs.post({"after": "a pause of the reader"})
    assert ours.receive(0) is not None
    while ours.receive(0.05) is not None or not ours.ended:
        pass
    assert ours.hung


def test_a_side_that_never_gives_the_expected_signs_of_life_counts_as_hanging(ends, monkeypatch):
    ours, _ = ends
    monkeypatch.setattr(channel, "SILENCE_S", 0.1)
    ours.expect_life()
    assert ours.receive(0) is None
    assert not ours.ended
    assert ours.receive(0.2) is None
    assert ours.hung


def test_a_side_with_signs_of_life_or_without_the_duty_may_be_silent(ends, monkeypatch):
    ours, theirs = ends
    monkeypatch.setattr(channel, "SILENCE_S", 0.3)
    monkeypatch.setattr(channel, "BEAT_S", 0.01)
    ours.show_life()
    assert ours.post({"text": "hello"})
    until_s = time.monotonic() + 0.7
    while time.monotonic() < until_s:
        theirs.receive(0.05)
        ours.receive(0.05)
    assert not theirs.ended
    assert not ours.ended
    ours.close()
