"""Zenoh's routers on real packets: a link fails for longer than their lease, and they route round it."""

import pytest

from experiments.rundir import RunDirectory
from tests.systems.on_packets import carried_out, needs

pytestmark = needs("zenoh", always=True)

CUT_S = 8
EXPERIMENT = f"""\
name: routers
topology: three-regions
system: zenoh
parameters: {{lease: 1s}}
roles: {{router: 1, publisher: 1, subscriber: 1}}
workload: {{event_size: 100B, rate: 50/s}}
duration: 13s
faults:
  - {{name: cut, at: 2s, cut: [r1, r2], for: {CUT_S}s}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    return carried_out(tmp_path_factory.mktemp("zenoh"), EXPERIMENT)


def test_events_go_round_while_the_link_is_down(run):
    recovery = run.read_summary()["recovery"]["cut"]
    assert 0.5 < recovery["switch_s"] < CUT_S


def test_what_is_lost_is_what_was_published_before_they_noticed(run):
    events = run.read_summary()["events"]
    assert events["published"] > 1500
    assert events["lost"] < 2 * 50 * CUT_S
    assert events["stray"] == events["corrupted"] == events["published_twice"] == 0
