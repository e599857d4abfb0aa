"""`cutset run --live`: the runs that can be watched, and that no failure of the watching process disturbs a
run.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments.loader import read_experiment
from experiments.records.rundir import RunDirectory
from testbed.campaign import live_view
from testbed.campaign.live_view import LiveWatcher, check_watchable
from testbed.cli import main
from testbed.run_selection import RunSelection
from topologies.errors import InputError


def chosen(*overrides: str, backend: str | None = None) -> RunSelection:
    file = read_experiment("link-failure", list(overrides))
    return RunSelection.from_options(file, backend=backend, links="auto", seed=None, repeat=None)


def test_one_run_on_this_machine_can_be_watched():
    check_watchable(chosen(), resumed=False)
    with pytest.raises(InputError, match="not a sweep or a repetition"):
        check_watchable(chosen(), resumed=True)
    with pytest.raises(InputError, match="needs a run on this machine"):
        check_watchable(chosen(backend="simulator"), resumed=False)


class Heard:
    """A follower that records what it is shown."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def __call__(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    def until(self, live: LiveWatcher, did: str) -> dict[str, Any]:
        """Exchange messages, as the command does during a run, until this text was shown."""
        while True:
            live.exchange({}, self)
            if found := [message for message in self.messages if message["did"] == did]:
                return found[0]


@contextmanager
def watching_with(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveWatcher]:
    """Return a LiveWatcher that starts this program instead of `analysis.live`."""
    run = RunDirectory(tmp_path / "run")
    run.make()
    real = live_view.subprocess.Popen

    def start(_command: list[str], **options: Any) -> Any:
        return real([sys.executable, "-c", script], **options)

    monkeypatch.setattr(live_view.subprocess, "Popen", start)
    with LiveWatcher(run) as live:
        yield live


def test_the_live_views_end_is_one_line(tmp_path, monkeypatch):
    heard = Heard()
    with watching_with("raise SystemExit(1)", tmp_path, monkeypatch) as live:
        assert heard.until(live, "unwatched")["text"] == "the live view ended by itself: see logs/live.log"
        live.exchange({"did": "phase", "phase": "running"}, heard)
        live.read_rest(heard)
    assert [message["did"] for message in heard.messages] == ["unwatched"]


def test_a_watching_process_that_does_not_read_delays_no_run(tmp_path, monkeypatch):
    monkeypatch.setattr(live_view, "END_TIMEOUT_S", 0.1)
    monkeypatch.setattr(live_view, "REST_TIMEOUT_S", 0.1)
    deaf = 'import signal, sys; print(\'{"did": "watching", "url": "x"}\', flush=True); signal.pause()'
    with watching_with(deaf, tmp_path, monkeypatch) as live:
        heard = Heard()
        heard.until(live, "watching")
        for _ in range(100):
            live.exchange({"did": "problem", "text": "x" * 10_000}, heard)
        live.read_rest(heard)
        process = live._process
    assert process is not None
    assert process.returncode == -9


def test_only_relevant_messages_are_forwarded(tmp_path, monkeypatch):
    monkeypatch.setattr(live_view, "END_TIMEOUT_S", 0.1)
    echo = """import sys
for line in sys.stdin:
    print('{"did": "echo", "of": %s}' % line.strip(), flush=True)
"""
    heard = Heard()
    with watching_with(echo, tmp_path, monkeypatch) as live:
        for did in ("drained", "progress", "phase"):
            live.exchange({"did": did, "phase": "running"}, heard)
        assert heard.until(live, "echo")["of"]["did"] == "phase"


def test_a_failed_live_view_is_reported_in_one_line(capsys):
    assert main.run(["run", "link-failure", "--live", "--repeat", "2"]) == 2
    assert capsys.readouterr().err == "cutset: --live: shows one run, not a sweep or a repetition\n"
