"""The client of a supervisor, with sessions that the test plays: effects of their messages and ends."""

import json
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Self

import pytest

from testbed.json_lines import line_of
from testbed.machines import supervisor_client as peer_module
from testbed.machines.ssh.ssh import UnreachableError
from testbed.machines.supervisor_client import NO_SUPERVISOR, Events, SupervisorClient

TIMEOUT_S = 30.0
PATIENCE_S = 60.0
NO_SUPERVISOR_TEXT = "no supervisor at /run"


class Session:
    """A session with the supervisor that sends this and then ends with this code; None: it breaks."""

    def __init__(self, *messages: Mapping[str, Any], code: int | None) -> None:
        self._lines = iter([line_of(message) for message in messages])
        self._code = code
        self.given = b""
        self.timeout_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.given += data

    def read(self, _: int) -> bytes:
        line = next(self._lines, b"")
        if not line and self._code is None:
            raise UnreachableError("h0: the SSH connection is lost")
        return line

    def wait(self) -> int:
        assert self._code is not None
        return self._code

    def error_output(self) -> str:
        return NO_SUPERVISOR_TEXT if self._code == NO_SUPERVISOR else ""

    @property
    def asked_from(self) -> int:
        greeting = next(line for line in self.given.splitlines() if b'"from"' in line)
        return int(json.loads(greeting)["from"])


class Played:
    """A machine with these sessions, one after the other."""

    def __init__(self, sessions: Sequence[Session], before_each: Callable[[], object]) -> None:
        self._sessions: Iterator[Session] = iter(sessions)
        self._before_each = before_each
        self.commands: list[str] = []

    def open(self, argv: Sequence[str], *, root: bool) -> Session:
        assert root
        self._before_each()
        self.commands += argv
        return next(self._sessions)

    def close(self) -> None:
        pass


def follow(
    *sessions: Session, before_each: Callable[[], object] = lambda: None
) -> tuple[list[dict[str, Any]], Played]:
    """Return all events that the client reports of these sessions."""
    events: Events = queue.SimpleQueue()
    played: Any = Played(sessions, before_each)
    machine: Any = SimpleNamespace(name="h0")
    peer = SupervisorClient(machine, lambda: played, lambda command: [command], events, PATIENCE_S)
    peer.start({"run": {}})
    told: list[dict[str, Any]] = []
    while not told or told[-1]["did"] not in {"gone", "lost"}:
        told.append(events.get(timeout=TIMEOUT_S)[1])
    peer.log_out()
    return told, played


def waits(number: int) -> dict[str, Any]:
    return {"did": "waits", "at": "ready", "n": number}


def test_a_closed_session_is_reopened_and_a_machine_without_supervisor_is_gone() -> None:
    sessions = [
        Session(waits(0), waits(1), code=0),
        Session(waits(1), waits(4), code=None),  # 1 is said again, 2 and 3 are not kept any more
        Session(code=NO_SUPERVISOR),
    ]
    told, played = follow(*sessions)
    assert [message.get("n", message["did"]) for message in told] == [0, 1, "broken", 4, "broken", "gone"]
    assert told[-1]["why"] == NO_SUPERVISOR_TEXT
    assert played.commands == ["start", "attach", "attach"]
    assert [session.asked_from for session in sessions] == [0, 2, 5]


def passing(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Callable[[], None]:
    """Return a function that lets so much time pass."""
    now = [0.0]
    monkeypatch.setattr(peer_module, "time", SimpleNamespace(monotonic=lambda: now[0], time_ns=lambda: 0))
    return lambda: now.append(now.pop() + seconds)


def test_the_wait_for_a_machine_counts_from_its_last_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Include a machine that sent only its clock for longer than the wait."""
    clock = {"did": "clock", "id": 1, "time_ns": 1}
    sessions = [Session(waits(0), code=None), *(Session(clock, code=None) for _ in range(3))]
    told, _ = follow(
        *sessions, Session(code=NO_SUPERVISOR), before_each=passing(monkeypatch, PATIENCE_S * 0.9)
    )
    assert told[-1]["did"] == "gone"


def test_a_machine_that_is_silent_for_the_whole_wait_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    before_each = passing(monkeypatch, PATIENCE_S * 0.4)
    told, played = follow(*(Session(code=None) for _ in range(9)), before_each=before_each)
    assert [message["did"] for message in told] == ["broken", "broken", "broken", "lost"]
    assert played.commands == ["start"] * 3


@pytest.mark.parametrize(
    "nonsense",
    [
        {"did": "clock", "id": 1, "time_ns": "late"},
        {"did": "clock", "id": [], "time_ns": 1},
        {"did": "clock", "id": 1, "time_ns": float("inf")},
        {"did": "waits", "n": "first"},
    ],
)
def test_a_machine_with_invalid_messages_is_lost(nonsense: dict[str, Any]) -> None:
    told, _ = follow(Session(nonsense, code=None))
    assert [message["did"] for message in told] == ["lost"]
    assert "its supervisor sent an invalid message" in told[0]["why"]
