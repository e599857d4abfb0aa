"""Who is told of a night, and what: any command, an e-mail, a webhook."""

import email
import email.policy
import json
import socketserver
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from experiments.campaigns.campaign import FailureKind, RunState
from experiments.campaigns.nights import NightDirectory, NightRecord
from experiments.records.run_record import Outcome
from testbed.nightly.hooks import call, check_hooks, message, message_of_missing_night
from tests.campaigns import night_record, night_run
from topologies.errors import InputError

DONE = {"state": RunState.DONE, "run": "abc", "verdict": "passed"}
MISSED = {"verdict": "failed", "failure": FailureKind.EXPECTATION, "problem": "3 events lost"}
RUN, FAILED = night_run(**DONE), night_run(repetition=1, **DONE | MISSED)
RECORD = night_record(RUN, FAILED)
ENDED = replace(RECORD, outcome=Outcome.COMPLETED, exit_code=1, findings=("cut slower",))
DIRECTORY = NightDirectory.for_night(Path("runs"), date(2026, 11, 21), "quick")


def told(record: NightRecord = ENDED) -> dict[str, Any]:
    return message(DIRECTORY, record, Path("history/site/index.html"))


def test_a_message_says_what_got_worse_and_what_failed():
    content = told()
    assert content["subject"].startswith("quick 2026-11-21 on ")
    assert content["subject"].endswith(": 1 got worse, 1 of 2 runs failed")
    assert content["text"].splitlines()[1:] == [
        "cut slower",
        "cut r1: expectation: 3 events lost",
        str(Path("history/site/index.html").absolute()),
    ]
    assert content["page"] == str(Path("history/site/index.html").absolute())
    assert content["failed"][0]["run"].endswith("/runs/abc")
    assert json.loads(json.dumps(content)) == content


def test_a_night_that_could_not_begin_is_reported_in_the_same_words():
    content = message_of_missing_night("quick", date(2026, 11, 21), "another night is on", 3)
    assert set(content) == set(told())
    assert (content["night"], content["outcome"], content["exit_code"]) == ("2026-11-21", "not begun", 3)
    assert content["text"].splitlines()[1:] == ["another night is on"]


def test_a_command_gets_the_night_on_standard_input(tmp_path):
    seen = tmp_path / "seen.json"
    program = f"open({str(seen)!r}, 'w').write(input())"
    assert call(f'{sys.executable} -c "{program}"', told()) is None
    assert json.loads(seen.read_text()) == told()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program --now", "the hook no-such-program could not be started: No such file"),
        ("sh -c 'echo no luck >&2; exit 7'", "the hook sh failed with 7: no luck"),
        ("false", "the hook false failed with 1: no output on standard error"),
        (r"""sh -c 'printf "caf\351" >&2; exit 1'""", "the hook sh failed with 1: caf\ufffd"),
    ],
)
def test_a_hook_that_fails_is_reported(command, said):
    assert said in call(command, told())


def test_a_hook_that_hangs_is_ended():
    assert call("sleep 100", told(), timeout_s=0.05) == "the hook sleep was ended after 0.05 s"


@pytest.mark.parametrize("command", ["", "  ", "echo 'half"])
def test_an_invalid_hook_is_refused_before_the_night(command):
    with pytest.raises(InputError, match="--hook"):
        check_hooks((command,))


def test_the_ready_webhook_posts_the_night():
    with server(HTTPServer, Posted) as (address, got):
        command = f"{sys.executable} -m testbed.nightly.webhook http://127.0.0.1:{address[1]}/night"
        assert call(command, told()) is None
    [(path, kind, body)] = got
    assert (path, kind) == ("/night", "application/json")
    assert json.loads(body) == told()


def test_the_sample_webhook_reports_an_unreachable_receiver():
    with server(HTTPServer, Refusing) as (address, _):
        url = f"http://127.0.0.1:{address[1]}/night"
        said = call(f"{sys.executable} -m testbed.nightly.webhook {url}", told())
    assert f"{url} did not accept it: HTTP Error 500" in said
    assert "is not an http or https URL" in call(
        f"{sys.executable} -m testbed.nightly.webhook file:///x", told()
    )


def test_the_ready_mail_is_a_letter_that_servers_take():
    with server(socketserver.TCPServer, Mailbox) as (address, got):
        options = f"--to ada@example.org --from night@example.org --smtp 127.0.0.1:{address[1]}"
        assert call(f"{sys.executable} -m testbed.nightly.mail {options}", told()) is None
    [letter] = got
    mail = email.message_from_bytes(letter, policy=email.policy.default)
    assert (mail["To"], mail["From"]) == ("ada@example.org", "night@example.org")
    assert mail["Subject"] == told()["subject"]
    assert "cut r1: expectation: 3 events lost" in mail.get_content()


@contextmanager
def server(kind: Any, handler: Any) -> Iterator[tuple[tuple[str, int], list[Any]]]:
    """Yield a server on a free port, with the list `got` for its handlers."""
    with kind(("127.0.0.1", 0), handler) as made:
        made.got = []
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield made.server_address, made.got
        finally:
            made.shutdown()
            thread.join()


class Posted(BaseHTTPRequestHandler):
    """Takes what is posted."""

    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


class Refusing(Posted):
    """Is out of order."""

    status = 500


class Mailbox(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as one letter needs."""

    def handle(self) -> None:
        self._say("220 ready")
        while (line := self.rfile.readline().strip()) and not line.upper().startswith(b"QUIT"):
            if line.upper() != b"DATA":
                self._say("250 yes")
                continue
            self._say("354 go on")
            letter = b""
            while (part := self.rfile.readline()) != b".\r\n":
                letter += part
            self.server.got.append(letter)
            self._say("250 taken")
        self._say("221 bye")

    def _say(self, text: str) -> None:
        self.wfile.write(text.encode() + b"\r\n")
