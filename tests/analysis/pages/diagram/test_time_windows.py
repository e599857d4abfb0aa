"""Which streams a moment disturbed."""

from analysis.pages.diagram.ranks import ranks_of
from analysis.pages.diagram.scene_builder import disturbed_streams
from tests.analysis.pages.report.synthetic_transfers import events, message


def test_a_resubscribed_stream_is_more_informative_than_one_that_lost_batches() -> None:
    rows = [
        events(1.0, "r0-proxy-0", "r1-proxy-0", 0, 1),
        *(events(1.0 + n / 100, "r2-proxy-0", "r3-proxy-0", 2, 1, took_s=None) for n in range(5)),
        message(1.2, "r2-proxy-0", "r0-proxy-0", "SUBSCRIBE", stream=3, cnt=5),
    ]
    assert disturbed_streams(rows, ranks_of("sprinkler")) == [3, 2]


def test_streams_that_only_flowed_were_not_disturbed() -> None:
    assert disturbed_streams([events(1.0, "r0-proxy-0", "r1-proxy-0", 0, 1)], ranks_of("sprinkler")) == []
