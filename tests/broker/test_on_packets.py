"""A system that nothing outside knows, from its plan to the packets behind a moment, by commands alone."""

import json
from pathlib import Path

import pytest

from testbed.cli import main

FILE = str(Path(__file__).with_name("brokers.yaml"))


@pytest.fixture
def cutset(broker_module, capsys):
    """Return a function that runs `cutset` with the system's module; its result: exit code and output."""

    def run(*arguments):
        code = main.run(["--system-module", str(broker_module), *map(str, arguments)])
        return code, capsys.readouterr().out

    return run


def test_a_system_is_not_known_without_its_module(monkeypatch, capsys):
    monkeypatch.delenv("CUTSET_SYSTEM_MODULES")
    assert main.run(["plan", FILE]) == 2
    assert "there is no system broker" in capsys.readouterr().err


def test_a_file_that_declares_no_system_is_refused(tmp_path, capsys):
    path = tmp_path / "nothing_much.py"
    path.write_text("SYSTEM = 3\n")
    assert main.run(["--system-module", str(path), "list"]) == 2
    assert "declares no system" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "instead", "problem"),
    [
        (
            '"topic", "subscription"',
            '"content", "beginning"',
            "the audience content needs since subscription",
        ),
        ('"topic", "subscription"', '"content", "subscription"', "goes with the workload content"),
        ('"stream", "at-most-once"', '"random", "at-most-once"', "contract.order should be one of none, "),
        ("(Trait.SUBSCRIBER,)", '("listener",)', "role subscriber: 'listener' is no trait"),
        ('"broker": Broker, ', "", "role broker has no machine"),
        ('"publisher"', '"häuptling"', "the name 'häuptling' should be a letter"),
        ("    CODEC,", "    None,", "it has no codec"),
        ("    Parameters,\n", "    Parameters(),\n", "the parameters should be a dataclass"),
        ("settle_us=1_500_000", "settle_us=-5", "contract.settle_us not be negative"),
        ('workloads=("topics",)', 'workloads=("topics",), ports=("prt",)', "there is no parameter 'prt'"),
        ('carries=("FORWARD",)', 'carries=("FOWARD",)', "the codec has no message 'FOWARD'"),
        ('("PUBLISH", "PUBLISH")', '("PUBLISH", "SUBSCRIBED")', "PUBLISH has no column request"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(
    broker_module, tmp_path, capsys, said, instead, problem
):
    text = broker_module.read_text()
    assert said in text
    path = tmp_path / f"wrong_{tmp_path.name}.py"  # a module of its own for each test
    path.write_text(text.replace(said, instead))
    assert main.run(["--system-module", str(path), "list"]) == 2
    assert problem in capsys.readouterr().err


def test_the_plan_has_what_the_system_declares(cutset):
    code, text = cutset("plan", FILE, "--format", "json")
    assert code == 0
    plan = json.loads(text)
    assert plan["declared"]["roles"]["broker"] == ["server"]
    assert [stream["region"] for stream in plan["streams"][:4]] == ["r0", "r1", "r2", "r3"]
    assert "topic_broker" not in text, "a plan leads to no code"


@pytest.mark.slow
def test_a_night_runs_it(cutset, tmp_path):
    suite = tmp_path / "brokers.yaml"
    entry = f"{{name: b, experiment: {FILE}, on: simulator, set: {{duration: 8s}}}}"
    suite.write_text(f"suite: brokers\nbudget: 5min\nentries: [{entry}]\n")
    history, nights = tmp_path / "history", tmp_path / "nights"
    code, text = cutset("nightly", suite, "--history", history, "--out", nights)
    assert (code, "1 passed" in text) == (0, True)
    code, text = cutset("history", "--history", history, "--metric", "measures.broker.followers.max")
    assert (code, "12" in text) == (0, True)


@pytest.mark.network
def test_on_real_packets_with_a_cut_link(cutset, tmp_path):
    short = (
        "duration=6s",
        "faults.cut.at=2500ms",
        "faults.cut.for=2s",
        "roles.subscriber=1",
        "workload.topics=4",
        "workload.subscriptions.each=3",
        "workload.rate=100/s",
    )
    given = [word for setting in short for word in ("--set", setting)]
    cutset("run", FILE, *given, "--out", tmp_path)  # perhaps invalid, on a busy machine; what came is right
    [run] = tmp_path.iterdir()
    summary = json.loads((run / "summary.json").read_text())
    assert {name: summary["events"][name] for name in ("lost", "stray", "duplicated", "out_of_order")} == {
        "lost": 0, "stray": 0, "duplicated": 0, "out_of_order": 0,
    }  # fmt: skip
    assert summary["agreement"]["held"] is True
    assert summary["measures"]["broker"]["followers"]["max"] == 3
    assert summary["latency"]["p50_ms"] > 0
    assert summary["recovery"]["cut"]["detect_s"] > 0.5
    assert summary["recovery"]["cut"]["affected_pairs"] > 0
    assert (run / "report.html").is_file()

    code, text = cutset("packets", run, "--type", "FORWARD", "--lost")
    assert code == 0
    assert "FORWARD t" in text
    code, text = cutset("follow", run, "r0", "20")
    assert code == 0
    assert "never seen" not in text
    code, text = cutset("diagram", run, "--around", "cut")
    assert code == 0
    assert (run / "figures" / "diagram-cut.svg").is_file()
