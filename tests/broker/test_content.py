"""Events by content, in one order for all: what a broken exchange does wrong is told as exactly that."""

import json
from pathlib import Path

import pytest

from analysis import run_tasks
from analysis.pages.report import write_report
from analysis.pipeline import analyze_here
from analysis.timelines.tasks.records import CheckClients
from experiments.records.rundir import RunDirectory
from node.systems import build_machine
from testbed.cli import main
from tests.broker.conftest import WRONG

FILE = "exchange.yaml"


def drops_and_repeats(exchange):
    """Leave out the 200th sending, and do the 300th twice."""
    usual, told = exchange.tell, []

    def tell(connection, message):
        told.append(connection)
        for _ in range({200: 0, 300: 2}.get(len(told), 1)):
            usual(connection, message)

    exchange.tell = tell


def tells_a_stranger(exchange):
    """One event, once, while no subscription changes: all do at 3.0 to 3.5 s, and at 6.0 to 6.5 s."""
    usual, told = exchange.wanted_by, []

    def wanted_by(about):
        wanted = usual(about)
        strangers = sorted(exchange.asked.keys() - set(wanted))
        if told or not strangers or not 4_600_000 < exchange.now_us - exchange.schedule.start_us < 4_900_000:
            return wanted
        told.append(strangers[0])
        return [*wanted, strangers[0]]

    exchange.wanted_by = wanted_by


def swaps_for_one(exchange):
    """Swap two consecutive events with at least four common subscribers for one subscriber, once.

    With four or more subscribers it is clear which one has the wrong order.
    """
    wanted_by, usual, told, held = exchange.wanted_by, exchange.tell, [[]], []

    def next_event(about):
        wanted = wanted_by(about)
        if len(held) == 1 and (held[0][0] not in wanted or len(set(wanted) & set(told[-1])) < 4):
            usual(*held.pop())
        told.append(wanted)
        return wanted

    def tell(connection, message):
        if not held and exchange.now_us - exchange.schedule.start_us > 4_000_000 and len(told[-1]) >= 4:
            held.append((connection, message))
        elif len(held) == 1 and connection == held[0][0]:
            usual(connection, message)
            usual(*held[0])
            held.append(None)
        else:
            usual(connection, message)

    exchange.wanted_by, exchange.tell = next_event, tell


@pytest.mark.slow
def test_the_summary_and_the_report_say_how_selective_subscriptions_were(summary_with, tmp_path):
    summary = summary_with(
        FILE, build_machine, "workload.subscriptions.change=null", "faults=[]", "duration=4s"
    )
    content, events = summary["content"], summary["events"]
    assert content["clients"]["mean"] * events["published"] == pytest.approx(events["delivered"], rel=0.05)
    assert content["clients"]["mean"] < content["subscriptions"]["mean"] < 24
    assert content["clients"]["p50"] <= content["clients"]["p95"] <= content["clients"]["max"] <= 12
    [run] = tmp_path.iterdir()
    page = write_report(RunDirectory.open(run)).read_text()
    assert "Events by number of matches" in page
    assert " clients on average: half of the events at most " in page


@pytest.mark.slow
def test_the_exchange_keeps_its_contract_through_a_cut_however_clients_are_shared_out(
    summary_with, tmp_path, monkeypatch
):
    """No task has too many matches."""
    before = summary_with(FILE, build_machine)
    assert before["events"]["delivered"] > 1_000
    assert {name: before["events"][name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert all(each["held"] for each in before["expectations"])
    assert before["verdict"] == "passed"
    [run] = map(RunDirectory.open, tmp_path.iterdir())
    clients, usual = [], CheckClients.__call__
    monkeypatch.setattr(
        CheckClients, "__call__", lambda task: (clients.append(len(task.clients)), usual(task))[1]
    )
    monkeypatch.setattr(run_tasks, "PAIRS_TOGETHER", 5 * (before["events"]["published"] + 20))
    after = analyze_here(run, progress=lambda text: None)
    assert clients == [5, 5, 2]
    assert {name: after[name] for name in ("events", "subscriptions", "content", "latency")} == {
        name: before[name] for name in ("events", "subscriptions", "content", "latency")
    }


PARTIAL = (
    "workload.attributes=[{name: price, max: 100, unspecified: 30%}, {name: volume, max: 9}]", "duration=6s"
)  # fmt: skip
QUOTES = (
    "workload.preset=stock-quotes", "workload.attributes=null", "workload.event_size=60B",
    "workload.subscriptions={each: 60, within: 500ms, change: 3s}", "duration=6s",
)  # fmt: skip


@pytest.mark.parametrize("settings", [PARTIAL, QUOTES], ids=["partial", "quotes"])
@pytest.mark.slow
def test_partial_events_and_stock_quotes_are_delivered_correctly(wrong_with, settings):
    assert wrong_with(FILE, build_machine, *settings) == {}


@pytest.mark.slow
def test_each_defect_is_reported_as_itself(wrong_with, with_role):
    def break_it(exchange):
        for change in (drops_and_repeats, tells_a_stranger, swaps_for_one):
            change(exchange)

    found = wrong_with(FILE, with_role("exchange", break_it))
    assert found == dict.fromkeys(("lost", "stray", "duplicated", "out_of_order"), 1)


@pytest.mark.network
def test_on_real_packets(tmp_path, capsys):
    short = ["--set", "duration=4s", "--set", "faults=[]", "--set", "roles.default.subscriber=1"]
    main.run(["run", str(Path(__file__).with_name(FILE)), *short, "--out", str(tmp_path)])
    [run] = tmp_path.iterdir()  # a busy machine's run may be invalid; what came is right all the same
    summary = json.loads((run / "summary.json").read_text())
    assert {name: summary["events"][name] for name in ("lost", "stray", "duplicated", "out_of_order")} == {
        "lost": 0, "stray": 0, "duplicated": 0, "out_of_order": 0,
    }  # fmt: skip
    assert summary["events"]["delivered"] > 300
    assert summary["agreement"]["held"] is True
    assert summary["latency"]["p50_ms"] > 0
    capsys.readouterr()
    assert main.run(["follow", str(run), "r1", "100"]) == 0
    assert "never seen" not in capsys.readouterr().out
    assert main.run(["packets", str(run), "--type", "NOTIFY", "--format", "json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert len(bytes.fromhex(first["key"])) == 16
    assert first["label"].endswith(f" {first['key'][:6]}")
