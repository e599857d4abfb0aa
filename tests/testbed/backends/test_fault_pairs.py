"""Two faults of links that begin together, nest, overlap or follow each other: each has the figure that the
deliveries alone give.

`python -m tests.testbed.backends.test_fault_pairs 500` tries so many drawn pairs, and prints which differ.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from analysis.pipeline import analyze_here
from experiments.loader import load_experiment
from experiments.rundir import RunDirectory
from node.core.deliveries import RecordKind, read_records
from testbed.backends.simulator import simulate
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from topologies.loader import load_topology

EXPERIMENT = """\
name: pairs
topology:
  name: triangle
  regions: {{a: {{lan: {{delay: 1ms}}}}, b: {{lan: {{delay: 1ms}}}}, c: {{lan: {{delay: 1ms}}}}}}
  links:
    - {{between: [a, b], delay: 20ms, rate: 100mbit}}
    - {{between: [b, c], delay: 20ms, rate: 100mbit}}
    - {{between: [a, c], delay: 20ms, rate: 100mbit}}
system: sprinkler
roles: {{proxy: 1, driver: 1, client: 1}}
workload: {{event_size: 10B, rate: 200/s}}
duration: 12s
faults:
  - {{name: one, at: {at[0]}ms, {kind[0]}, for: {lasts[0]}ms}}
  - {{name: two, at: {at[1]}ms, {kind[1]}, for: {lasts[1]}ms}}
"""
KINDS = (
    *(f"cut: [{link}]" for link in ("a, b", "b, c", "a, c")),
    *(f"cut: [a, b], direction: {direction}" for direction in ("forward", "backward")),
    "cut: [a, b], mode: down",
    "isolate: b",
    "set: [a, b], delay: 60ms",
    "set: [a, b], loss: 20%",
)
BIN_S = 0.2


@dataclass(frozen=True)
class Pair:
    """Two faults: what each does, from when, for how long, in milliseconds."""

    kind: tuple[str, str]
    at: tuple[int, int]
    lasts: tuple[int, int]

    @classmethod
    def drawn(cls, seed: int) -> "Pair":
        """Of one instant, nested, overlapping or adjacent, each as often as the others."""
        rng = Random(seed)
        at, lasts = 3_000, rng.choice((1_000, 2_000, 3_000))
        later, shorter = rng.choice(
            ((0, lasts), (0, lasts // 2), (lasts // 4, lasts // 2), (lasts // 2, lasts), (lasts, lasts))
        )
        return cls((rng.choice(KINDS), rng.choice(KINDS)), (at, at + later), (lasts, shorter))

    def text(self) -> str:
        """The experiment."""
        return EXPERIMENT.format(**vars(self))


def carried_out(pair: Pair, folder: Path) -> RunDirectory:
    """The run of a pair in virtual time, analysed."""
    path = folder / "pairs.yaml"
    path.write_text(pair.text())
    experiment = load_experiment(str(path))
    plan = make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="auto")
    run = prepare(folder, plan, {"experiment": experiment.model_dump(mode="json"), "topology": {}})
    simulate(run, lambda message: None)
    analyze_here(run, progress=lambda text: None)
    return run


def first_came_s(run: RunDirectory, t_ns: int) -> dict[tuple[int, str], float]:
    """For each stream at each client: how long after a time the first event came that was published since."""
    published: dict[int, list[tuple[int, int]]] = {}
    records = {
        host.name: read_records(run.host_deliveries(host.name).read_bytes())[0]
        for host in run.read_run().plan.hosts
        if run.host_deliveries(host.name).is_file()
    }
    for found in records.values():
        for each in found:
            if each.kind == RecordKind.PUBLISHED:
                published.setdefault(each.stream, []).append((each.time_ns, each.first_seq))
    found_s = {}
    for host, found in records.items():
        for stream, batches in published.items():
            since = min((first for at_ns, first in batches if at_ns >= t_ns), default=None)
            came = [
                each.time_ns
                for each in found
                if each.kind == RecordKind.DELIVERED
                and each.stream == stream
                and since is not None
                and each.first_seq + each.count > since
            ]
            if came:
                found_s[stream, host] = (min(came) - t_ns) / 1e9
    return found_s


def differences(pair: Pair, folder: Path) -> list[str]:
    """Where a figure of the summary is not within a bin of what the deliveries give."""
    run = carried_out(pair, folder)
    record, summary = run.read_run(), run.read_summary()
    problems = []
    for number, name in enumerate(("one", "two")):
        t_ns = record.times.zero_ns + pair.at[number] * 1_000_000
        waited_s, figure_s = first_came_s(run, t_ns), summary["recovery"][name]["switch_s"]
        longest_s = max(waited_s.values(), default=0.0)
        if figure_s is not None and figure_s > longest_s + BIN_S:
            problems.append(f"{name}: {figure_s} s, though nothing took longer than {longest_s:.3f} s")
        if figure_s is None and _is_alone(pair, number) and longest_s > 2 * BIN_S:
            problems.append(f"{name}: nothing, though something took {longest_s:.3f} s")
        elif figure_s is not None and _is_alone(pair, number) and abs(figure_s - longest_s) > BIN_S:
            problems.append(f"{name}: {figure_s} s in place of {longest_s:.3f} s")
    return problems


def _is_alone(pair: Pair, number: int) -> bool:
    """Whether the longest wait since a fault is its own: the other one is over, or has not begun by then."""
    return number == 0 and pair.at[1] - pair.at[0] >= 2_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_the_figures_of_drawn_pairs_are_what_the_deliveries_give(tmp_path, seed):
    assert differences(Pair.drawn(seed), tmp_path) == []


@pytest.mark.slow
def test_two_cuts_of_one_instant_have_the_same_figure(tmp_path):
    pair = Pair(("cut: [a, b]", "cut: [a, b], direction: forward"), (3_000, 3_000), (2_000, 1_000))
    run = carried_out(pair, tmp_path)
    summary = run.read_summary()
    figures = [summary["recovery"][name]["switch_s"] for name in ("one", "two")]
    longest_s = max(first_came_s(run, run.read_run().times.zero_ns + 3 * 10**9).values())
    assert figures == pytest.approx([longest_s] * 2, abs=BIN_S)
    assert any(
        "recovery.one: it took hold together with two" in note for note in summary["fidelity"]["notes"]
    )


@pytest.mark.slow
def test_a_fault_that_changes_nothing_when_it_begins_never_takes_hold(tmp_path):
    pair = Pair(("cut: [a, b]", "cut: [a, b]"), (3_000, 4_000), (2_000, 2_000))
    summary = carried_out(pair, tmp_path).read_summary()
    assert summary["recovery"]["one"]["switch_s"] > 0
    assert summary["recovery"]["two"]["switch_s"] is None
    assert any(
        "recovery.two: it never took hold: when it began" in note for note in summary["fidelity"]["notes"]
    )


if __name__ == "__main__":
    for seed in range(int(sys.argv[1])):
        with tempfile.TemporaryDirectory() as folder:
            if problems := differences(Pair.drawn(seed), Path(folder)):
                print(seed, Pair.drawn(seed), problems, flush=True)  # noqa: T201
