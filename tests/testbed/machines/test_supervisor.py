"""The supervisor alone: its messages, and its end. Its run breaks at once, because its kind of links does not
exist, or is played by the test.
"""

import contextlib
import json
import os
import socket
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from experiments.records.rundir import RunDirectory
from experiments.records.validated_json import to_json
from testbed.execution.record import RUNNER_LOG
from testbed.json_lines import MessageParser, line_of
from testbed.machines.agent import supervisor
from testbed.machines.agent.supervisor import Supervisor, listen
from testbed.machines.run_folders import SOCKET
from testbed.sandbox.channel import SandboxChannel
from tests.run_json import SMALL, set_run

pytestmark = [pytest.mark.network, pytest.mark.machines]
TIMEOUT_S = 60.0
AN_HOUR_NS = 3600 * 1_000_000_000


class Attached:
    """A client of the supervisor's socket. since: the first message that it requests."""

    def __init__(self, run: RunDirectory, since: int | None = 0) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect(str(run.path / SOCKET))
        self._lines = MessageParser()
        self._heard: list[dict[str, Any]] = []
        if since is not None:
            self.say(**{"from": since})

    def say(self, **message: Any) -> None:
        self._socket.sendall(line_of(message))

    def hear(self, did: str) -> dict[str, Any]:
        """Return the next message of this kind; drop those before it."""
        while True:
            while not self._heard:
                data = self._socket.recv(65536)
                assert data, f"the supervisor hung up before it said {did}"
                self._heard += self._lines.feed(data)
            message = self._heard.pop(0)
            if message["did"] == did:
                return message

    def is_hung_up(self) -> bool:
        """Return whether the supervisor ends the connection, whatever it sent before."""
        while self._socket.recv(65536):
            pass
        return True


class PlayedRun:
    """A substitute for the sandbox with the run."""

    def __init__(self) -> None:
        ours, self._end = SandboxChannel.pair()
        self._end.settimeout(TIMEOUT_S)
        self.channel = SandboxChannel(ours)
        self.process = SimpleNamespace(pid=os.getpid())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def say(self, did: str, **fields: Any) -> None:
        self._end.sendall(json.dumps({"did": did, **fields}).encode())

    def end(self) -> None:
        self._end.close()


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedRun:
    """Return the run that supervisors start from now on."""
    run = PlayedRun()
    monkeypatch.setattr(supervisor, "Sandbox", lambda *_, **__: run)
    return run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.make()
    set_run(run, plan=to_json(replace(SMALL, links_kind="of another kind")))
    return run


def serve(run: RunDirectory, visit: Any, *, lease_s: float = 60.0, **clocks: Any) -> list[BaseException]:
    """Serve until the supervisor ends, while `visit` runs in another thread; return that thread's error."""
    wrong: list[BaseException] = []

    def be_visitor() -> None:
        try:
            visit()
        except BaseException as error:  # noqa: BLE001 (told to the test)
            wrong.append(error)
            with contextlib.suppress(OSError):  # it has gone by itself
                Attached(run).say(do="bye")

    listener = listen(run.path)
    visitor = threading.Thread(target=be_visitor)
    visitor.start()
    with listener:
        Supervisor(run, [], lease_s, **clocks).serve(listener)
    visitor.join()
    return wrong


def test_a_returning_controller_gets_the_messages_that_it_missed(run: RunDirectory) -> None:
    def visit() -> None:
        first = Attached(run)
        ended = first.hear("ended")
        assert ended["outcome"] == "crashed"
        again = Attached(run, ended["n"])
        assert again.hear("ended") == ended
        again.say(do="bye")

    assert serve(run, visit) == []
    content = json.loads(run.run_json.read_text())
    assert content["outcome"] == "crashed"
    assert content["problems"] == ["the run died while building: see runner.log"]


def test_a_supervisor_reports_its_clock_and_ends_after_the_lease_without_contact(
    run: RunDirectory, played: PlayedRun
) -> None:
    now = [0.0]

    def visit() -> None:
        attached = Attached(run)
        played.end()
        attached.hear("ended")
        for number, time_s in enumerate((59.0, 118.0)):
            now[0] = time_s
            attached.say(do="clock", id=number)  # which renews the lease
            assert attached.hear("clock") == {"did": "clock", "id": number, "time_ns": AN_HOUR_NS}
        now[0] = 179.0
        assert attached.is_hung_up()

    assert serve(run, visit, lease_s=60.0, now_s=lambda: now[0], now_ns=lambda: AN_HOUR_NS) == []


def test_clients_with_invalid_messages_are_disconnected(run: RunDirectory, played: PlayedRun) -> None:
    def visit() -> None:
        for nonsense in ({"what": 1}, {"do": "clock"}, {"from": "the beginning"}):
            stranger = Attached(run, None)
            stranger.say(**nonsense)
            assert stranger.is_hung_up()
        attached = Attached(run)
        attached.say(do="bye")

    assert serve(run, visit) == []


def test_a_slow_reader_stays_connected_and_misses_nothing(run: RunDirectory, played: PlayedRun) -> None:
    count, text = 180, "x" * 100_000  # more than a connection takes at once

    def visit() -> None:
        attached = Attached(run)
        for number in range(count):
            played.say("problem", number=number, text=text)
        played.end()
        assert [attached.hear("problem")["number"] for _ in range(count)] == list(range(count))
        attached.hear("ended")
        attached.say(do="bye")

    assert serve(run, visit) == []


def test_causes_that_prevent_a_start_are_reported(run: RunDirectory) -> None:
    (run.path / RUNNER_LOG).mkdir()

    def visit() -> None:
        attached = Attached(run)
        failed = attached.hear("failed")
        assert (failed["kind"], failed["text"]) == ("machine", f"{run.path / RUNNER_LOG}: Is a directory")
        assert attached.hear("ended")["outcome"] == "crashed"
        attached.say(do="bye")

    assert serve(run, visit) == []


def test_an_end_that_cannot_be_recorded_is_reported(run: RunDirectory, played: PlayedRun) -> None:
    (run.path / f".run.json.{os.getpid()}.tmp").mkdir()  # where it would be written

    def visit() -> None:
        attached = Attached(run)
        played.end()
        assert "the run's outcome cannot be recorded" in attached.hear("problem")["text"]
        assert attached.hear("ended")["outcome"] == "crashed"
        attached.say(do="bye")

    assert serve(run, visit) == []
