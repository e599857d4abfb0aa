"""Division of a publisher's rate among its topics."""

from collections import Counter

import pytest

from node.core.machine import RecordKind
from tests.node.protocols.scribe.groups import Groups


@pytest.mark.parametrize(
    ("topics", "rate_per_s", "counts"),
    [
        (8, 20, {0: 40, 4: 40}),
        (8, 3, {0: 6, 4: 6}),
        (40, 3, dict.fromkeys(range(0, 40, 4), 1) | {0: 2, 4: 2}),
    ],
    ids=["all at once", "all at once, seldom", "taking turns"],
)
def test_each_topic_gets_its_share_of_the_rate(topics, rate_per_s, counts):
    groups = Groups(8, topics, rate_per_s=rate_per_s, run_us=4_050_000)
    published = Counter()
    for _, record in groups.recorded("r0/publisher-0", RecordKind.PUBLISHED):
        published[record.stream] += record.count
    assert published == counts
