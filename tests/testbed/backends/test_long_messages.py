"""Messages that take longer than the silence limit arrive once, in all three systems."""

import pytest

from tests.virtual_runs import experiment_in, simulated, summary_of

EXPERIMENT = """\
topology:
  name: narrow
  regions: {{r0: {{lan: {{delay: 1ms, rate: 1gbit}}}}, r1: {{lan: {{delay: 1ms, rate: 1gbit}}}}}}
  links: [{{between: [r0, r1], delay: 10ms, rate: {link}}}]
{system}
duration: {duration}
drain: 120s
expect: [events.lost == 0, events.published >= 4]
"""
SPRINKLER = """\
workload: {{event_size: 60kB, rate: {rate}}}
"""
SCRIBE = """\
system: scribe
roles: {publisher: 1, member: 2}
workload: {kind: topics, event_size: 60kB, rate: 0.015/s, topics: 2, subscriptions: {each: 1}}
"""
MEGHDOOT = """\
system: meghdoot
roles: {publisher: 1, subscriber: 2, peer: 1}
workload:
  kind: content
  event_size: 30kB
  rate: 0.1/s
  attributes: [{name: price, max: 100}]
  subscriptions: {each: 1, within: 5s, templates: [{weight: 1, ranges: {price: 60%}}]}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "link", "duration"),
    [
        (SPRINKLER.format(rate="0.25/s"), "250kbit", "30s"),
        (SPRINKLER.format(rate="0.02/s"), "30kbit", "120s"),
        (SCRIBE, "250kbit", "150s"),
        (MEGHDOOT, "250kbit", "40s"),
    ],
    ids=["sprinkler", "sprinkler-ten-times-the-silence", "scribe", "meghdoot"],
)
def test_each_event_arrives_once(tmp_path, system, link, duration):
    experiment = experiment_in(tmp_path, EXPERIMENT.format(system=system, link=link, duration=duration))
    events = summary_of(simulated(experiment, tmp_path))["events"]
    assert events["published"] >= 4
    assert (events["lost"], events["duplicated"], events["out_of_order"]) == (0, 0, 0)
    assert events["delivered"] > events["published"]
