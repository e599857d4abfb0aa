"""The control channel."""

import pytest

from testbed.errors import TestbedError
from testbed.sandbox.channel import FD_VARIABLE, SandboxChannel


@pytest.fixture
def ends() -> tuple[SandboxChannel, SandboxChannel]:
    ours, theirs = SandboxChannel.pair()
    return SandboxChannel(ours), SandboxChannel(theirs)


def test_messages_arrive_whole_and_in_order(ends: tuple[SandboxChannel, SandboxChannel]) -> None:
    ours, theirs = ends
    for number in range(100):
        assert ours.post({"number": number, "text": "x" * 1000 if number % 2 else ""})
        received = theirs.receive(1)
        assert received is not None
        assert received["number"] == number


def test_nothing_comes_in_time(ends: tuple[SandboxChannel, SandboxChannel]) -> None:
    ours, _ = ends
    assert ours.receive(0) is None
    assert not ours.ended


def test_the_end_of_the_other_side_is_noticed(ends: tuple[SandboxChannel, SandboxChannel]) -> None:
    ours, theirs = ends
    theirs.post({"last": True})
    theirs.close()
    assert ours.receive(1) == {"last": True}
    assert ours.receive(1) is None
    assert ours.ended
    assert not ours.post({"to": "nobody"})


def test_a_side_that_does_not_read_cannot_stall_the_other(
    ends: tuple[SandboxChannel, SandboxChannel],
) -> None:
    ours, theirs = ends
    posted = 0
    while ours.post({"text": "x" * 1000}):
        posted += 1
        assert posted < 100_000
    assert theirs.receive(0) is not None
    assert ours.post({"text": "again"})


def test_outside_of_a_sandbox_there_is_no_channel_to_inherit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FD_VARIABLE, raising=False)
    with pytest.raises(TestbedError, match="only inside a sandbox"):
        SandboxChannel.inherited()
