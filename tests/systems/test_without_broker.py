"""A system without a broker, on real packets: publishers send to subscribers, and forget some during a
cut.
"""

import shutil
from pathlib import Path

import pytest

from node.core.declaration import Contract, Declared, Trait
from tests.systems.on_packets import run_on_packets

EXPERIMENT = """\
name: direct
topology: two-regions
system: ./direct
roles: {publisher: 1, subscriber: 1}
workload: {event_size: 100B, rate: 20/s}
duration: 7s
drain: 1s
faults:
  - {name: cut, at: 2s, cut: [r0, r1], for: 2s}
"""


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("direct")
    shutil.copytree(Path(__file__).parent / "direct", folder / "direct")
    return run_on_packets(folder, EXPERIMENT).read_summary()


@pytest.mark.network
@pytest.mark.slow
class TestForgottenSubscribers:
    def test_a_stream_that_never_resumes_fails_the_run_and_is_named(self, summary):
        assert summary["convergence"]["stalled"] == 2
        flows = [each for each in summary["expectations"] if each["text"] == "convergence.stalled == 0"]
        assert flows == [{"text": "convergence.stalled == 0", "value": 2, "held": False}]
        assert summary["verdict"] in {"failed", "invalid"}
        stalled = [note for note in summary["fidelity"]["notes"] if note.startswith("stalled: ")]
        for here, there in (("r0", "r1"), ("r1", "r0")):
            [note] = [
                note for note in stalled if f"{here}-subscriber-0 got no event of {there} after " in note
            ]
            assert f"the last packet from {there}-publisher-0 reached it at " in note

    def test_the_cut_affected_the_streams_that_crossed_the_link(self, summary):
        found = summary["recovery"]["cut"]
        assert found["affected_pairs"] == 2
        assert found["lost"] == summary["events"]["lost"] > 150
        assert found["switch_s"] is None

    def test_packets_and_records_agree(self, summary):
        assert summary["events"]["published"] > 200
        assert summary["agreement"]["held"] is True
        assert summary["latency"]["p50_ms"] is not None


def traits_of(*roles: tuple[Trait, ...]) -> Declared:
    return Declared("any", {f"role{number}": traits for number, traits in enumerate(roles)}, Contract())


@pytest.mark.parametrize(
    ("roles", "by_host"),
    [
        ([(Trait.PUBLISHER,), (Trait.SUBSCRIBER,)], True),
        ([(Trait.PUBLISHER, Trait.SUBSCRIBER)], True),
        ([(Trait.PUBLISHER, Trait.SERVER), (Trait.SUBSCRIBER,)], True),
        ([(Trait.PUBLISHER,), (Trait.SUBSCRIBER, Trait.SERVER)], True),
        ([(Trait.PUBLISHER,), (Trait.SERVER,), (Trait.SUBSCRIBER,)], False),
        ([(Trait.PUBLISHER, Trait.SUBSCRIBER), (Trait.SERVER,)], False),
    ],
)
def test_paths_lead_from_host_to_host_unless_only_servers_forward(roles, by_host):
    assert traits_of(*roles).by_host is by_host
