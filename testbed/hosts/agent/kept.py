"""What a supervisor keeps of what its run said, so that who comes back misses nothing that matters.

Messages are numbered in the order in which they were said. Kept to the end is what steers the run: where it
waits, in which phase it is, how it ended. Its plan bounds how much that is. Of what only the last of its kind
says, and of what is only shown, `LAST_KEPT` are kept; the numbers of the others stay empty.
"""

from collections import deque

from testbed.hosts.agent.messages import Message, line_of

LAST_KEPT = {"counts": 1, "change": 10_000}


class Kept:
    """Lines as they are sent, by number."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._last: dict[str, deque[int]] = {did: deque() for did in LAST_KEPT}

    def __len__(self) -> int:
        """The number of the next message."""
        return len(self._lines)

    def __getitem__(self, number: int) -> bytes:
        """The line; nothing if it is not kept any more."""
        return self._lines[number]

    def add(self, message: Message) -> None:
        """Number and keep a message."""
        number = len(self._lines)
        self._lines.append(line_of({**message, "n": number}))
        did = message.get("did", "")
        if did in LAST_KEPT:
            self._last[did].append(number)
            if len(self._last[did]) > LAST_KEPT[did]:
                self._lines[self._last[did].popleft()] = b""
