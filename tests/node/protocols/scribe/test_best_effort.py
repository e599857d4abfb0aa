"""Scribe without its reliability keeps the paper's promise and no more, as the run's contract states."""

from collections import Counter

import pytest

from experiments.loader import load_experiment
from node.protocols.scribe.declaration import BEST_EFFORT, EXACTLY_ONCE
from tests.node.protocols.scribe.groups import Groups
from topologies.errors import InputError

KEEPING = {"Replicate", "Replicated", "Published", "Fetch", "Gone"}
EXPERIMENT = """
name: small
topology: four-regions
system: scribe
roles: {{publisher: 1, member: 2}}
workload:
  {{kind: topics, event_size: 20B, rate: 10/s, topics: 4, subscriptions: {{each: 1}}}}
duration: 5s
parameters: {{delivery: {delivery}}}
contract: {contract}
"""


def sent_by(groups, us):
    """Return the messages sent in a period, by kind."""
    found = Counter()

    def watch(source, target, messages):
        found.update(type(getattr(message, "message", message)).__name__ for message in messages)

    groups.network.watch = watch
    groups.run(us)
    return found


@pytest.mark.slow
def test_events_are_not_stored_replicated_or_resent():
    reliable, plain = Groups(members=8), Groups(delivery="best-effort")
    assert KEEPING & sent_by(reliable, 2_000_000).keys()
    assert not KEEPING & sent_by(plain, 5_000_000).keys()
    plain.finish()
    lost, repeated, disordered, delivered = plain.judged()
    assert (lost, repeated, disordered) == (0, 0, 0)  # where nothing fails
    assert delivered >= 1_000
    assert not any(state.kept for *_, topic in plain.topics() for state in topic.streams.values())
    assert all(node.publisher.is_silent for node in plain.nodes().values())


def test_a_link_failure_loses_only_events_in_flight():
    groups = Groups(delivery="best-effort", run_us=1_000_000)
    groups.cut((2, 3), then_us=6_000_000)
    groups.cut(then_us=2_000_000)
    groups.finish()
    lost, repeated, _, delivered = groups.judged()
    assert lost > 0
    assert repeated == 0
    assert delivered > lost


def test_the_contract_follows_the_parameters_and_cannot_be_raised(tmp_path):
    path = tmp_path / "small.yaml"
    for promised in (BEST_EFFORT, EXACTLY_ONCE):
        path.write_text(EXPERIMENT.format(delivery=promised.delivery, contract="{}"))
        assert load_experiment(str(path)).declared().contract == promised
    path.write_text(EXPERIMENT.format(delivery="best-effort", contract="{delivery: exactly-once}"))
    with pytest.raises(InputError, match="more than the system promises"):
        load_experiment(str(path))
