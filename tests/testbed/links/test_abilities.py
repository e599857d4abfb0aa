"""A plan with a link parameter that its links do not implement is refused, or gets other links."""

import statistics

import pytest

from experiments.loader import load_experiment
from testbed.backends.backend import LocalBackend
from testbed.backends.simulator import Simulator
from testbed.planning import make_plan
from tests.testbed.links.relay.test_link_direction import ALONE, make_link_direction
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters
from topologies.loader import load_topology

EXPERIMENT = """\
name: able
topology:
  name: pair
  regions: {{a: {{lan: {lan}}}, b: {{}}}}
  links: [{{between: [a, b], {link}}}]
system: sprinkler
roles: {{proxy: 1, driver: 1, client: 1}}
workload: {{event_size: 10B, rate: 100/s}}
duration: 5s
faults: [{faults}]
"""
CORRELATED = "delay: 20ms, jitter: 5ms, jitter_correlation: 75%"
SHRUNK = "{{name: hole, at: 1s, set: [a, b], mtu: 1300B{}}}"
LATER = "{name: drift, at: 1s, set: [a, b], jitter: 5ms, jitter_correlation: 75%}"


@pytest.fixture
def plan_of(tmp_path):
    def make(link="delay: 20ms", lan="{delay: 1ms}", faults="", links_kind="auto"):
        path = tmp_path / "able.yaml"
        path.write_text(EXPERIMENT.format(link=link, lan=lan, faults=faults))
        experiment = load_experiment(str(path))
        return make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind=links_kind)

    return make


def test_netem_is_kept_if_it_implements_the_parameters(plan_of):
    plan = plan_of("delay: 20ms, jitter: 5ms, loss: 1%, loss_burst: 8packets, rate: 10mbit, queue: 90packets")
    assert LocalBackend().adapted(plan) == plan


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"link": "delay: 20ms, rate: 10mbit, queue: 90packets"}, "link a-b has a queue limit"),
        ({"lan": "{delay: 1ms, jitter: 100us}"}, "link lan-a-proxy-0 has jitter"),
        ({"lan": "{delay: 1ms, loss: 1%}"}, "link lan-a-proxy-0 has loss"),
        ({"link": "delay: 20ms, mtu: 1300B, icmp: dropped"}, ""),
        ({"faults": SHRUNK.format("")}, ""),
        (
            {"faults": "{name: narrow, at: 1s, set: [a, b], queue: 90packets}"},
            "fault narrow gives a-b a queue",
        ),
    ],
)
def test_features_missing_in_virtual_time_are_refused(plan_of, given, said):
    with pytest.raises(
        InputError, match=f"{said}.*which links in virtual time do not implement: use --on local"
    ):
        Simulator().adapted(plan_of(**given))


def test_the_relays_deviations_have_the_requested_correlation():
    parameters = LinkParameters(delay_us=20_000, jitter_us=5_000, jitter_correlation=0.75)
    link, queue = make_link_direction(parameters)
    for number in range(2_000):
        link.admit(ALONE[0], number * 12_000_000)
    releases_us = sorted(entry[0] / 1_000 for entry in queue.heap)
    late_us = [release_us - number * 12_000 for number, release_us in enumerate(releases_us)]
    assert statistics.correlation(late_us[:-1], late_us[1:]) == pytest.approx(0.75, abs=0.05)
    assert 15_000 <= min(late_us) <= max(late_us) <= 25_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"link": CORRELATED}, "correlated jitter"),
        ({"faults": LATER}, "correlated jitter"),
        ({"link": "delay: 20ms, loss: 1%, duplicate: 1%"}, "loss together with duplicates"),
        ({"faults": SHRUNK.format(", direction: forward")}, "another MTU"),
    ],
)
def test_parameters_that_netem_lacks_select_the_relay(plan_of, given, said):
    for links_kind in ("auto", "relay"):
        assert LocalBackend().adapted(plan_of(**given, links_kind=links_kind)).links_kind == "relay"
    with pytest.raises(InputError, match=f"{said}, which links of kind netem do not implement: "):
        LocalBackend().adapted(plan_of(**given, links_kind="netem"))


@pytest.mark.parametrize(
    "given",
    [
        {"link": "delay: 20ms, duplicate: 1%, corrupt: 1%, jitter: 5ms, jitter_distribution: pareto"},
        {"link": "delay: 20ms, mtu: 1300B, icmp: dropped"},
        {"faults": SHRUNK.format(", for: 2s")},
    ],
)
def test_netem_is_kept_for_duplicates_corruption_distributions_and_black_holes(plan_of, given):
    assert LocalBackend().adapted(plan_of(**given)).links_kind == "auto"


def test_a_black_hole_needs_an_mtu_and_a_set_no_table(plan_of):
    with pytest.raises(InputError, match=r"icmp: is without effect: give an mtu below 1500B"):
        plan_of("delay: 20ms, icmp: dropped")
    with pytest.raises(
        InputError, match=r"jitter_distribution: is a file: only a link of the topology can have one"
    ):
        plan_of(faults="{name: odd, at: 1s, set: [a, b], jitter_distribution: delays.csv}")
