"""NATS and Redis on real packets: a link is down for a while, and comes back before TCP gives up."""

import pytest

from tests.systems.on_packets import needs, run_on_packets

EXPERIMENT = """\
name: short-cut
topology: three-regions
system: {system}
parameters: {parameters}
roles: {{{server}: 1, publisher: 1, subscriber: 1}}
workload: {{event_size: 100B, rate: 50/s}}
duration: 12s
drain: 20s
faults:
  - {{name: cut, at: 2s, cut: [r1, r2], for: 3s}}
"""


@pytest.mark.parametrize(
    ("system", "server", "parameters"),
    [
        pytest.param("nats", "server", "{}", marks=needs("nats")),
        pytest.param("nats-gateways", "server", "{}", marks=needs("nats-gateways")),
        pytest.param("nats-jetstream", "server", "{leader: r1}", marks=needs("nats-jetstream")),
        pytest.param("redis", "master", "{}", marks=needs("redis")),
        pytest.param("redis-streams", "server", "{master: r1}", marks=needs("redis-streams")),
    ],
)
def test_queued_events_arrive_when_the_link_is_back(tmp_path, system, server, parameters):
    run = run_on_packets(tmp_path, EXPERIMENT.format(system=system, server=server, parameters=parameters))
    summary = run.read_summary()
    events = summary["events"]
    assert events["published"] > 1500
    assert events["lost"] == events["duplicated"] == events["out_of_order"] == events["stray"] == 0
    assert summary["recovery"]["cut"]["switch_s"] > 3, "nothing goes round"
    assert (summary["agreement"]["held"], summary["agreement"]["disagreements"]) == (True, [])
    versions = run.read_run().versions
    assert all(versions[need.name] for need in run.read_run().plan.programs.needs)
