"""The live page's server: it serves only its own pages; each gets the whole state and then changes."""

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.live import board as boards
from analysis.live.board import LiveBoard
from analysis.live.server import PageServer

TIMEOUT_S = 20
LISTENING = "0A"  # in /proc/net/tcp


@pytest.fixture
def board() -> LiveBoard:
    return LiveBoard({"title": "link-failure"})


@pytest.fixture
def server(board: LiveBoard) -> Iterator[PageServer]:
    made = PageServer(board)
    made.start()
    yield made
    made.stop()


def ask(server: PageServer, path: str, **headers: str) -> http.client.HTTPResponse:
    place = server.url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(place, timeout=TIMEOUT_S)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest("GET", path, skip_host="Host" in named)
    for name, value in named.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


def next_event(stream: http.client.HTTPResponse) -> dict:
    while not (line := stream.readline()).startswith(b"data: "):
        assert line, "the stream ended"
    return json.loads(line.removeprefix(b"data: "))


def test_the_live_server_listens_on_loopback_only(server: PageServer) -> None:
    port = int(server.url.rstrip("/").rpartition(":")[2])
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    sockets = [line.split() for line in listening.splitlines()]
    places = [place for _, place, _, state, *_ in sockets if state == LISTENING]
    assert [place for place in places if place.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


@pytest.mark.parametrize("path", ["/", "/live.css", "/live.js", "/plot.js", "/page.css", "/theme.js"])
def test_pages_load_nothing_from_other_servers(server: PageServer, path: str) -> None:
    answer = ask(server, path)
    assert answer.status == 200
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/events", "/report"])
def test_other_names_and_origins_are_refused(server: PageServer, path: str, headers: dict[str, str]) -> None:
    assert ask(server, path, **headers).status == 403


def test_there_is_no_report_until_it_is_written(server: PageServer, tmp_path: Path) -> None:
    assert ask(server, "/report").status == 404
    server.report = tmp_path / "report.html"
    server.report.write_text("<title>Passed</title>")
    answer = ask(server, "/report")
    assert (answer.status, answer.read()) == (200, b"<title>Passed</title>")
    assert "Content-Security-Policy" not in answer.headers  # the page brings its own


def test_only_reading_is_served(server: PageServer) -> None:
    place = server.url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(place, timeout=TIMEOUT_S)
    connection.request("POST", "/events")
    assert connection.getresponse().status == 405


def test_a_page_gets_the_whole_state_and_then_changes(server: PageServer, board: LiveBoard) -> None:
    board.update({"phase": "building"}, lines=["problem: one"])
    board.update({"phase": "running"}, throughput={"r0": [[0.2, 5.0], [0.0, 1.0]]})
    stream = ask(server, "/events")
    assert stream.headers["Content-Type"].startswith("text/event-stream")
    whole = next_event(stream)
    assert whole["whole"] is True
    assert (whole["title"], whole["status"], whole["lines"]) == (
        "link-failure",
        {"phase": "running"},
        ["problem: one"],
    )
    assert whole["throughput"] == {"r0": [[0.0, 1.0], [0.2, 5.0]]}
    board.update({}, latency={"r1": [[0.0, 1.0, 2.0, 3.0]]})
    change = next_event(stream)
    assert "whole" not in change
    assert change["latency"] == {"r1": [[0.0, 1.0, 2.0, 3.0]]}
    board.update({}, throughput={"r0": [[0.2, 7.0]]})
    assert board.whole()["throughput"] == {"r0": [[0.0, 1.0], [0.2, 7.0]]}  # a bin told again is replaced


def test_at_the_end_page_connections_are_closed(server: PageServer, board: LiveBoard) -> None:
    stream = ask(server, "/events")
    next_event(stream)
    board.update({"report": "/runs/x/report.html"})
    server.stop()
    assert next_event(stream)["status"] == {"report": "/runs/x/report.html"}
    assert stream.read().strip() == b""
    assert board.pages == 0


def test_a_slow_page_is_disconnected_and_may_reconnect(
    board: LiveBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "WAITING_MAX", 4)

    async def lag() -> list[str]:
        following = board.follow()
        got = [await anext(following)]
        for number in range(9):
            board.update({"elapsed_s": number})
        await asyncio.sleep(0)  # lets the loop hand them over
        return got + [text async for text in following]

    assert len(asyncio.run(lag())) == 1
    assert board.pages == 0
