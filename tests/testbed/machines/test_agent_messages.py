"""Messages between a supervisor and its controller: as lines, and as stored."""

import json

import pytest

from testbed.json_lines import LineError, MessageParser, line_of
from testbed.machines.agent.attachment import LAST_KEPT, RetainedMessages


@pytest.mark.parametrize("data", [b"no json\n", b"[" * 100_000 + b"\n", b"[1]\n", b"x" * (2 << 20)])
def test_invalid_messages_are_refused(data: bytes) -> None:
    with pytest.raises(LineError):
        list(MessageParser().feed(data))


def test_messages_may_come_in_any_pieces() -> None:
    messages = [{"do": "clock", "id": number} for number in range(3)]
    data, lines = b"".join(line_of(message) for message in messages), MessageParser()
    assert [message for byte in data for message in lines.feed(bytes([byte]))] == messages


def test_the_last_display_messages_and_all_control_messages_are_kept() -> None:
    kept = RetainedMessages()
    kept.add({"did": "waits", "at": "ready"})
    for number in range(LAST_KEPT["change"] + 3):
        kept.add({"did": "change", "number": number})
    kept.add({"did": "counts", "published": {}})
    kept.add({"did": "counts", "published": {"0": 7}})
    lines = [json.loads(line) for number in range(len(kept)) if (line := kept[number])]
    assert [line["n"] for line in lines] == [0, *range(4, len(kept) - 2), len(kept) - 1]
    assert next(line["number"] for line in lines if line["did"] == "change") == 3
    assert lines[-1]["published"] == {"0": 7}
