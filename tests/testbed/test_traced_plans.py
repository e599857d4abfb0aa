"""A link that follows a trace: its plan, its combination with faults, and refused traces."""

from pathlib import Path

import pytest

from experiments.loader import read_experiment
from experiments.planned.changes import LinkChange, LinkDirectionName, LinkState
from experiments.planned.plan import Plan, plan_from_json, plan_to_json
from testbed.cli import main
from testbed.planning import make_plan
from topologies.errors import InputError
from topologies.link_parameters import queue_limit_packets
from topologies.loader import load_topology
from topologies.traces import synthetic

TOPOLOGY = """
name: traced
regions: {{r0: {{}}, r1: {{}}}}
links:
  - between: [r0, r1]
    delay: 30ms
    {more}
    trace: {{delay: delays.csv}}
    forward: {{trace: {{rate: down.trace}}}}
"""
EXPERIMENT = """
name: over-a-trace
topology: traced.yaml
system: sprinkler
roles: {{proxy: 1, driver: 1, client: 1}}
workload: {{event_size: 10B, rate: 100/s}}
duration: 20s
faults: {faults}
"""
FAULTS = """
  - {name: slow, at: 5s, set: [r0, r1], rate: 1mbit, for: 5s}
  - {name: far, at: 7s, set: [r0, r1], delay: 80ms, direction: forward, for: 5s}
  - {name: cut, at: 14s, cut: [r0, r1], for: 2s}
"""


@pytest.fixture
def plan_in(tmp_path: Path):
    """Return a function that makes a plan over a link that follows these files."""

    def make(
        rate: str = "50\n150\n200\n", delays: str = "0,20\n0.1,40\n0.2,", more: str = "", faults: str = "[]"
    ) -> Plan:
        (tmp_path / "down.trace").write_text(rate)
        (tmp_path / "delays.csv").write_text("time_s,delay_ms\n" + delays)
        (tmp_path / "traced.yaml").write_text(TOPOLOGY.format(more=more))
        (tmp_path / "experiment.yaml").write_text(EXPERIMENT.format(faults=faults))
        experiment = read_experiment(str(tmp_path / "experiment.yaml"), []).experiment
        return make_plan(experiment, load_topology(experiment.topology), seed=None, links_kind="auto")

    return make


def test_the_plan_has_the_trace_and_derived_parameters(plan_in, tmp_path: Path) -> None:
    plan = plan_in()
    (link,) = (link for link in plan.links if link.kind == "wan")
    forward, backward = link.trace(LinkDirectionName.FORWARD), link.trace(LinkDirectionName.BACKWARD)
    assert forward.rate.values == (121_120, 242_240)
    assert (forward.delay.values, backward.delay) == ((20_000, 40_000), forward.delay)
    assert backward.rate is None
    assert (link.forward.rate_traced, link.forward.delay_traced) == (True, True)
    assert (link.backward.rate_traced, link.backward.delay_traced) == (False, True)
    assert link.forward.rate_bits_per_s == 181_680  # its mean, until time 0
    assert link.forward.queue_packets == queue_limit_packets(link.forward)
    assert link.backward.rate_bits_per_s is None
    for file in tmp_path.iterdir():
        file.unlink()
    assert plan_from_json(plan_to_json(plan)) == plan  # elsewhere, without any of the files


def test_a_faults_values_replace_the_trace_and_a_cut_leaves_it_unchanged(plan_in) -> None:
    changes = [
        change
        for change in plan_in(faults=FAULTS).changes
        if isinstance(change, LinkChange) and change.direction is LinkDirectionName.FORWARD
    ]
    told = [
        (
            change.at_us // 1_000_000,
            change.state,
            change.parameters.rate_traced or change.parameters.rate_bits_per_s,
            change.parameters.delay_traced or change.parameters.delay_us,
        )
        for change in changes
    ]
    up = LinkState.UP
    assert told == [
        (5, up, 1_000_000, True),
        (7, up, 1_000_000, 80_000),
        (10, up, True, 80_000),
        (12, up, True, True),
        (14, LinkState.BLACKHOLE, True, True),
        (16, up, True, True),
    ]
    assert changes[-1].parameters.rate_bits_per_s == 181_680


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rate": "5\n3\n"}, "down.trace:2: 3 ms is before 5 ms"),
        ({"delays": "0,x\n1,"}, "delays.csv:2: delay_ms 'x' is not a number"),
        ({"more": "jitter: 25ms"}, "falls to 20ms, less than the jitter of 25ms of the link r0-r1"),
        ({"more": "jitter: 5ms\n    trace: {rate: x}"}, "given twice"),
    ],
)
def test_a_trace_that_no_link_can_follow_is_refused(plan_in, given: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", "\\(")):
        plan_in(**given)


def test_the_synthetic_traces_can_be_reproduced() -> None:
    for name, text in synthetic.texts().items():
        assert (synthetic.FOLDER / name).read_text() == text, name


def test_the_plans_text_names_the_traces_of_links(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", "link-failure-lte"]) == 0
    text = capsys.readouterr().out
    assert "r0-edge  queue 300packets, rate traced, delay traced  " in text
    assert (
        "r0-edge forward   rate   6.362 Mbit/s on average, 0 to 59.35  lte-synthetic-down.trace, 60s" in text
    )


def test_missing_files_and_empty_traces_are_errors_with_their_line(tmp_path: Path) -> None:
    for trace, said in (
        ("{rate: nowhere.trace}", r"t.yaml:6: links.0.trace.rate: there is no file .*nowhere.trace"),
        ("{}", r"t.yaml:6: links.0.trace: names no file"),
        ("{loss: x}", r"t.yaml:6: links.0.trace.loss: unknown field"),
    ):
        text = "name: t\nregions: {r0: {}, r1: {}}\nlinks:\n  - between: [r0, r1]\n    delay: 1ms\n"
        (tmp_path / "t.yaml").write_text(f"{text}    trace: {trace}\n")
        with pytest.raises(InputError, match=said):
            load_topology(str(tmp_path / "t.yaml"))
