"""`nemesis` detects broken builds: with seeds that the protocol survives, it reports the defect of each."""

from collections.abc import Callable

import pytest

from analysis.timelines.summary import FLOWS
from experiments.loader import load_experiment
from node.systems import build_machine
from tests.node.protocols.sprinkler.readings import (
    Refreshing,
    forgetting_repetitions,
    never_asking_the_proxy,
    with_sources,
)
from tests.virtual_runs import missed, simulated, summary_of

pytestmark = pytest.mark.slow

FEWER_BATCHES = ("workload.rate=200/s", "parameters.flush_interval=50ms")
EXPERIMENT = load_experiment("nemesis", ["nemesis.vary=null", *FEWER_BATCHES])
CUTS, HEAD_KILLED = (
    17,
    8,
)  # seeds: of regions cut off from each other; of a head killed while a driver publishes


@pytest.fixture
def broken_by(tmp_path) -> Callable[..., list[str]]:
    """Return a function that runs nemesis in virtual time and returns the failed expectations."""

    def run(seed, build=build_machine, experiment=EXPERIMENT):
        summary = summary_of(simulated(experiment, tmp_path, seed=seed, build=build))
        broken = missed(summary)
        assert summary["verdict"] == ("failed" if broken else "passed")
        assert summary["events"]["delivered"] > 100_000
        return broken

    return run


@pytest.mark.parametrize("seed", [CUTS, HEAD_KILLED])
def test_the_protocol_survives(broken_by, seed):
    assert broken_by(seed) == []


def test_several_streams_of_a_region_and_publishers_elsewhere_survive_too(broken_by):
    assert broken_by(1, experiment=load_experiment("nemesis-streams", FEWER_BATCHES)) == []


def test_sources_that_are_kept_as_long_as_they_advertise_leave_events_undelivered(broken_by):
    """Follow the prose by the letter: expects is refreshed by every advertisement, with or without
    progress.
    """
    assert broken_by(CUTS, with_sources(Refreshing)) == ["events.lost == 0", FLOWS]


def test_without_request_from_proxy_what_a_lost_peer_was_asked_for_is_lost(broken_by):
    """Skip a retransmission."""
    assert broken_by(CUTS, never_asking_the_proxy) == ["events.lost == 0", FLOWS]


def test_a_chain_that_does_not_know_a_repetition_publishes_twice(broken_by):
    """Let a driver repeat at the new head what the killed one had forwarded without an acknowledgement."""
    assert broken_by(HEAD_KILLED, forgetting_repetitions) == ["events.duplicated == 0"]
