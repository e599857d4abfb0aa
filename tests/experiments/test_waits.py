"""A timeout shorter than the round trips of the topology is refused in one line."""

import pytest

from experiments.loader import load_experiment
from testbed.cli import main
from topologies.document import files_in
from topologies.loader import FOLDER, load_topology
from topologies.round_trips import greatest_detour, greatest_direct

EXPERIMENT = """
name: waits
topology: {topology}
system: {system}
parameters: {parameters}
roles: {roles}
workload: {workload}
duration: 5s
"""
SCRIBE = {"system": "scribe", "roles": "{publisher: 1, member: 2}"}
SCRIBE |= {"workload": "{kind: topics, event_size: 50B, rate: 10/s, topics: 2, subscriptions: {each: 1}}"}


SPRINKLER = {"system": "sprinkler", "roles": "{proxy: 1, driver: 1, client: 1}"}
SPRINKLER |= {"workload": "{event_size: 50B, rate: 10/s}"}


@pytest.fixture
def written(tmp_path):
    def write(topology, parameters="{}", system=SCRIBE):
        path = tmp_path / "waits.yaml"
        path.write_text(EXPERIMENT.format(topology=topology, parameters=parameters, **system))
        return str(path)

    return write


def test_probe_timeouts_shorter_than_the_longest_detour_are_refused(written, capsys):
    path = written("ring-8", "{probe_timeout: 250ms}")
    assert main.run(["plan", path]) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert said.endswith(
        "parameters.probe_timeout: waits 750ms in 3 attempts, but the round trip r4-r5 through r7 of "
        "ring-8 takes 998ms: --set parameters.probe_timeout=333ms or more"
    )


def test_the_advised_timeout_suffices_and_a_shorter_one_does_not(written):
    load_experiment(written("ring-8", "{probe_timeout: 333ms}"))
    with pytest.raises(Exception, match="probe_timeout=333ms or more"):
        load_experiment(written("ring-8", "{probe_timeout: 332ms}"))
    load_experiment(written("ring-8", "{probe_timeout: 250ms, probes: 4}"))


def test_without_a_shorter_detour_the_route_itself_counts(written):
    direct = greatest_direct(load_topology("star-4"))
    assert greatest_detour(load_topology("star-4")) is None
    with pytest.raises(Exception, match=f"round trip {direct} of star-4 takes"):
        load_experiment(written("star-4", "{probe_timeout: 50ms}"))


def test_a_default_timeout_that_is_too_short_is_reported_as_a_default(tmp_path, capsys):
    topology = "{name: far, regions: {a: {}, b: {}}, links: [{between: [a, b], delay: 900ms}]}"
    path = tmp_path / "waits.yaml"
    path.write_text(EXPERIMENT.format(topology=topology, parameters="{}", **SPRINKLER))
    assert main.run(["plan", str(path)]) == 2
    said = capsys.readouterr().err
    assert "waits 1s unless it is given, but the round trip a-b of far takes 1804ms" in said
    assert said.endswith("--set parameters.connect_timeout=1805ms or more\n")


@pytest.mark.parametrize("topology", [file.stem for file in files_in(FOLDER)])
@pytest.mark.parametrize("system", [SCRIBE, SPRINKLER], ids=["scribe", "sprinkler"])
def test_default_timeouts_suffice_on_every_shipped_topology(written, topology, system):
    load_experiment(written(topology, system=system))
