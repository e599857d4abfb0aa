"""A topology inside an experiment behaves like one in a file of its own."""

import pytest

from experiments.loader import load_experiment, read_experiment
from experiments.model import Experiment
from tests.experiments.small_experiment import GOOD, changed, load
from tests.refusals import refusal
from topologies.errors import InputError
from topologies.loader import load_topology

__all__ = ["load"]  # a fixture

TRACED = "{regions: {r0: {}, r1: {}}, links: [{between: [r0, r1], delay: 1ms, trace: {delay: t.csv}}]}"
RING = "{kind: ring, regions: 4, delays: {from: 5ms, to: 20ms}}"


def test_a_topology_may_be_in_the_experiment_itself(load):
    experiment = load(changed("three-regions", RING), "topology.regions=5")
    topology = load_topology(experiment.topology)
    assert topology.name == "inline"
    assert len(topology.links) == 5
    again = Experiment.model_validate(experiment.to_json())
    assert load_topology(again.topology) == topology
    written = load(
        changed(
            "three-regions",
            "{name: two, regions: {r0: {}, r1: {}}, links: [{between: [r0, r1], delay: 1ms}]}",
        )
    )
    assert load_topology(written.topology).name == "two"
    swept = load(f"{changed('three-regions', RING)}sweep: {{topology.regions: [3, 6]}}\n")
    assert swept.axes == {"topology.regions": [3, 6]}


def test_traces_of_a_topology_in_an_experiment_start_from_its_file(load, tmp_path, monkeypatch):
    (tmp_path / "slow.csv").write_text("time_s,delay_ms\n0,10\n1,20\n")
    net = "{regions: {r0: {}, r1: {}}, links: [{between: [r0, r1], delay: 1ms, trace: {delay: slow.csv}}]}"
    load(changed("three-regions", net))
    monkeypatch.chdir("/")
    experiment = load_experiment(str(tmp_path / "small.yaml"))
    (link,) = load_topology(experiment.topology).links
    assert link.forward_files == {"delay": str(tmp_path / "slow.csv")}


@pytest.mark.parametrize(
    ("topology", "line", "said"),
    [
        ("{kind: ring, regions: 2, delays: [1ms]}", 2, "topology.regions: should be greater"),
        ("{}", 2, "topology.regions: is missing"),
        ("[r0, r1]", 2, "topology: should be a name, a path, or a topology's fields, not"),
        (
            "{regions: {r0: {}, r1: {}, r2: {}}, links: [{between: [r0, r1], delay: 1ms}]}",
            2,
            "topology: no path leads from r0 to r2",
        ),
        ("\n  regions:\n    a: {}\n    1: {}\n    b: {}", 5, "topology.regions.1: "),
        ("\n  regions:\n    a: {}\n    a.b: {}", 5, "topology.regions.a.b: "),
        (
            "\n  kind: ring\n  regions: 3\n  delays:\n    from: 5ms\n    to: 9ms\n    5: 6",
            8,
            "topology.delays.5: ",
        ),
        ("\n  links:\n  - between: [a, b]\n    delay: x\n  regions: {A: {}}", 5, "topology.links.0.delay: "),
        (TRACED.replace("t.csv", 300 * "x"), 2, "topology.links.0.trace.delay: there is no file "),
    ],
)
def test_the_first_wrong_line_of_an_inline_topology_is_named(load, topology, line, said):
    assert refusal(
        load, changed(" three-regions", topology if topology.startswith("\n") else f" {topology}")
    ).startswith(f"small.yaml:{line}: {said}")


def test_an_override_of_a_topology_in_the_experiment_is_named(load):
    assert refusal(load, changed("three-regions", RING), "topology.delays.0=5ms").startswith(
        "--set topology.delays.0=5ms: topology.delays.0: unknown field"
    )


def test_paths_in_overrides_start_from_the_working_directory_and_those_of_variants_from_the_file(
    tmp_path, monkeypatch
):
    folder = tmp_path / "sub"
    folder.mkdir()
    for name in ("t.csv", "u.csv"):
        (folder / name).write_text("time_s,delay_ms\n0,10\n1,20\n")
    (folder / "net.yaml").write_text(
        "name: net\nregions: {r0: {}, r1: {}}\nlinks: [{between: [r0, r1], delay: 1ms}]\n"
    )
    text = changed("three-regions", TRACED)
    (folder / "swept.yaml").write_text(f"{text}sweep: {{roles.client: [1, 2]}}\n")
    (folder / "varied.yaml").write_text(
        f"{text}variants: {{x: {{topology: ./net.yaml}}, y: {{topology.links.0.trace.delay: u.csv}}}}\n"
    )
    monkeypatch.chdir(tmp_path)

    def delays(experiment) -> dict[str, str]:
        return load_topology(experiment.topology).links[0].forward_files

    over = "topology.links.0.trace.delay=sub/u.csv"
    file = read_experiment("sub/swept.yaml", [over])
    assert (
        delays(file.experiment) == delays(file.point({"roles.client": 2})) == {"delay": str(folder / "u.csv")}
    )
    file = read_experiment("sub/swept.yaml", ["topology=sub/net.yaml"])
    assert load_topology(file.point({"roles.client": 2}).topology).name == "net"
    assert load_topology(load_experiment("sub/varied.yaml", ["variant=x"]).topology).name == "net"
    assert delays(load_experiment("sub/varied.yaml", ["variant=y"])) == {"delay": str(folder / "u.csv")}


def test_an_experiment_does_not_depend_on_its_place(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("time_s,delay_ms\n0,10\n1,20\n")
    (tmp_path / "net.yaml").write_text(
        "name: net\nregions: {r0: {}, r1: {}}\nlinks: [{between: [r0, r1], delay: 1ms}]\n"
    )
    (tmp_path / "elsewhere").mkdir()
    for topology in (TRACED, "./net.yaml"):
        (tmp_path / "small.yaml").write_text(changed("three-regions", topology))
        monkeypatch.chdir(tmp_path)
        here = load_experiment("small.yaml")
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert load_experiment("../small.yaml") == here


def test_an_error_in_a_swept_topology_shows_it_as_in_the_file(load):
    with pytest.raises(InputError, match=r"with topology=\{kind: ring, regions: 2\}: "):
        load(f"{GOOD}sweep: {{topology: [{{kind: ring, regions: 2}}]}}\n")
