"""The subscription rule's verdicts, one by one (paper 3.1, with the checklist's readings)."""

import pytest

from node.protocols.sprinkler.expects import Expects, Heard, StreamRate, SubscriptionRule, Verdict

A_US = 1_000_000
RULE = SubscriptionRule(A_US, 1.0)
AT_US = 50 * A_US  # when the source advertised last
EXPECTS = Expects("source", 10_000, AT_US)


def judge(proxy, cnt, after_s, *, owner=False, rate_per_s=1000.0, expects=EXPECTS):
    return RULE.judge(expects, Heard(proxy, cnt, AT_US + int(after_s * A_US), owner), rate_per_s)


def test_the_source_itself_only_refreshes():
    assert judge("source", 99_999, 5) is Verdict.REFRESH


@pytest.mark.parametrize("after_s", [0.1, 0.5, 0.9])
def test_another_proxy_that_is_on_time_is_no_reason_to_switch(after_s):
    assert judge("other", 10_000 + int(1000 * after_s), after_s) is Verdict.KEEP


def test_another_proxy_is_taken_once_the_source_is_overdue():
    assert judge("other", 11_100, 1.1) is Verdict.SWITCH


def test_the_same_holds_for_a_stream_of_one_event_a_second():
    assert judge("other", 10_001, 0.9, rate_per_s=1.0) is Verdict.KEEP
    assert judge("other", 10_002, 2.0, rate_per_s=1.0) is Verdict.SWITCH


def test_a_burst_on_a_quiet_stream_is_no_reason_to_switch():
    assert judge("other", 60_000, 0.5, rate_per_s=0.0) is Verdict.KEEP


def test_a_proxy_that_is_not_ahead_is_never_taken():
    assert judge("other", 10_000, 100) is Verdict.KEEP


def test_the_owner_is_taken_as_soon_as_it_is_as_far_as_the_source_was():
    assert judge("owner", 10_000, 0.01, owner=True) is Verdict.DIRECT
    assert judge("owner", 9_999, 0.01, owner=True) is Verdict.KEEP


def test_without_a_source_whoever_is_ahead_is_taken():
    none = Expects(None, 10_000, AT_US)
    assert judge("other", 10_001, 0.001, rate_per_s=None, expects=none) is Verdict.SWITCH
    assert judge("other", 10_000, 50, rate_per_s=None, expects=none) is Verdict.KEEP


def test_the_rate_is_that_of_the_furthest_counter_over_at_least_a_period():
    rate = StreamRate(A_US)
    for tenth in range(100):
        rate.advertised(100 * tenth, tenth * A_US // 10)
    assert rate.per_s == pytest.approx(1000, rel=0.01)


def test_a_rate_that_changes_is_followed_within_a_few_periods():
    rate = StreamRate(A_US)
    cnt = 0
    for second in range(5):
        rate.advertised(cnt := cnt + 1000, second * A_US)
    for second in range(5, 11):
        rate.advertised(cnt := cnt + 10, second * A_US)
    assert rate.per_s == pytest.approx(10, abs=30)
