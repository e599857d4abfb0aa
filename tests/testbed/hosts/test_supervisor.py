"""The supervisor alone: what it says to whom, and when it goes. Its run breaks at once, as it has no plan."""

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from experiments.rundir import RunDirectory, write_json
from testbed.hosts.agent.files import SOCKET
from testbed.hosts.agent.messages import LineError, Lines, line_of
from testbed.hosts.agent.supervisor import Supervisor, listen

pytestmark = pytest.mark.network
TIMEOUT_S = 30.0
AN_HOUR_NS = 3600 * 1_000_000_000


class Attached:
    """Somebody at the supervisor's socket."""

    def __init__(self, run: RunDirectory) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect(str(run.path / SOCKET))
        self._lines = Lines()
        self._heard: list[dict[str, Any]] = []

    def say(self, **message: Any) -> None:
        self._socket.sendall(line_of(message))

    def hear(self, did: str) -> dict[str, Any]:
        """The next message of this kind; those before it are dropped."""
        while True:
            while not self._heard:
                data = self._socket.recv(65536)
                assert data, f"the supervisor hung up before it said {did}"
                self._heard += self._lines.feed(data)
            message = self._heard.pop(0)
            if message["did"] == did:
                return message

    def is_hung_up(self) -> bool:
        """Whether the supervisor ends the connection, whatever it said before."""
        while self._socket.recv(65536):
            pass
        return True


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.make()
    content = {"outcome": None, "phase": "planned", "problems": [], "times": {}}
    write_json(run.run_json, content)
    return run


def serve(run: RunDirectory, visit: Any, *, lease_s: float = 60.0, **clocks: Any) -> list[BaseException]:
    """Serve until the supervisor ends, while `visit` is done in another thread; what went wrong there."""
    wrong: list[BaseException] = []

    def be_visitor() -> None:
        try:
            visit()
        except BaseException as error:  # noqa: BLE001 (told to the test)
            wrong.append(error)

    listener = listen(run.path)
    visitor = threading.Thread(target=be_visitor)
    visitor.start()
    with listener:
        Supervisor(run, [], lease_s, **clocks).serve(listener)
    visitor.join()
    return wrong


def test_who_comes_back_hears_what_was_said_from_where_they_left(run: RunDirectory) -> None:
    def visit() -> None:
        first = Attached(run)
        first.say(**{"from": 0})
        ended = first.hear("ended")
        assert ended["outcome"] == "crashed"
        again = Attached(run)
        again.say(**{"from": ended["n"]})
        assert again.hear("ended") == ended
        again.say(do="bye")

    assert serve(run, visit) == []
    content = json.loads(run.run_json.read_text())
    assert content["outcome"] == "crashed"
    assert content["problems"] == ["the run died while planned: see runner.log"]


def test_a_new_one_takes_the_place_of_who_is_attached(run: RunDirectory) -> None:
    def visit() -> None:
        first = Attached(run)
        first.say(**{"from": 0})
        first.hear("ended")
        second = Attached(run)
        assert first.is_hung_up()
        second.say(do="bye")

    assert serve(run, visit) == []


def test_the_clock_that_it_tells_is_the_machine_s(run: RunDirectory) -> None:
    def visit() -> None:
        attached = Attached(run)
        attached.say(**{"from": 0})
        attached.hear("ended")
        attached.say(do="clock", id=7)
        assert attached.hear("clock") == {"did": "clock", "id": 7, "time_ns": AN_HOUR_NS}
        attached.say(do="bye")

    assert serve(run, visit, now_ns=lambda: AN_HOUR_NS) == []


def test_it_goes_when_nobody_is_heard_of_for_the_lease(run: RunDirectory) -> None:
    now = [0.0]

    def visit() -> None:
        attached = Attached(run)
        attached.say(**{"from": 0})
        attached.hear("ended")
        now[0] = 59.0
        attached.say(do="clock", id=1)  # which renews the lease
        attached.hear("clock")
        now[0] = 118.0
        attached.say(do="clock", id=2)
        attached.hear("clock")
        now[0] = 179.0
        assert attached.is_hung_up()

    assert serve(run, visit, lease_s=60.0, now_s=lambda: now[0]) == []


def test_who_does_not_speak_its_language_is_hung_up_on(run: RunDirectory) -> None:
    def visit() -> None:
        for nonsense in ({"what": 1}, {"do": "clock"}, {"from": "the beginning"}):
            stranger = Attached(run)
            stranger.say(**nonsense)
            assert stranger.is_hung_up()
        attached = Attached(run)
        attached.say(do="bye")

    assert serve(run, visit) == []


@pytest.mark.parametrize("data", [b"no json\n", b"[1]\n", b"x" * (2 << 20)])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(LineError):
        list(Lines().feed(data))


def test_messages_may_come_in_any_pieces() -> None:
    messages = [{"do": "clock", "id": number} for number in range(3)]
    data, lines = b"".join(line_of(message) for message in messages), Lines()
    assert [message for byte in data for message in lines.feed(bytes([byte]))] == messages
