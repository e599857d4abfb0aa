"""The choices of the subscription rule (paper 3.1, as interpreted in docs/subscription-rule.md)."""

from node.protocols.sprinkler.region.expects import Expects, Offer, SwitchReason, choose

ME, OWNER, NEAR, FAR = 0, 1, 2, 3
SOURCE = Offer("source", 10_000, 9_000, (NEAR, FAR, OWNER))
EXPECTS = Expects("source", 10_000)


def chosen(*offers, expects=EXPECTS, overdue=(), source=SOURCE):
    return choose(ME, {offer.proxy: offer for offer in (source, *offers)}, expects, overdue)


def other(cnt, earlier, path=(), proxy="other"):
    return Offer(proxy, cnt, earlier, path)


def test_a_source_that_keeps_up_is_not_left_for_one_that_is_ahead():
    assert chosen(other(10_900, 9_900, (NEAR, FAR, OWNER))) is None


def test_a_source_that_lags_by_an_advertisement_is_left():
    assert chosen(other(11_100, 10_001, (NEAR, FAR, OWNER))) == ("other", SwitchReason.ADVERTISEMENT)


def test_received_events_count_like_an_advertisement():
    assert chosen(other(11_100, 10_001, (NEAR, FAR, OWNER)), expects=Expects("source", 10_001)) is None


def test_rates_do_not_matter():
    slow = Offer("source", 7, 7, (NEAR, FAR, OWNER))
    assert chosen(other(8, 7, (NEAR, FAR, OWNER)), source=slow, expects=Expects("source", 7)) is None
    assert chosen(other(8, 8, (NEAR, FAR, OWNER)), source=slow, expects=Expects("source", 7)) is not None


def test_a_source_without_a_path_is_left_for_one_that_has_a_path_even_if_that_is_behind():
    lost = Offer("source", 10_000, 9_000)
    assert chosen(other(9_000, 8_000, (FAR, OWNER)), source=lost) == ("other", SwitchReason.PATH)


def test_a_source_that_takes_the_stream_from_us_has_no_path():
    loop = Offer("source", 10_000, 9_000, (NEAR, ME, OWNER))
    assert chosen(other(9_000, 8_000, (FAR, OWNER)), source=loop) == ("other", SwitchReason.PATH)


def test_a_peer_that_takes_the_stream_from_us_is_never_a_source():
    loop = other(20_000, 20_000, (FAR, ME, OWNER))
    assert chosen(loop) is None
    assert chosen(loop, source=Offer("source", 10_000, 9_000)) is None


def test_a_shorter_path_is_taken_if_it_keeps_up():
    assert chosen(other(9_000, 8_000, (FAR, OWNER))) == ("other", SwitchReason.SHORTER)
    assert chosen(other(8_999, 8_000, (FAR, OWNER))) is None


def test_the_owner_is_chosen_as_soon_as_it_is_connected():
    assert chosen(other(10_000, 10_000, (OWNER,))) == ("other", SwitchReason.DIRECT)


def test_an_equally_short_path_is_no_reason_to_change():
    assert chosen(other(10_000, 10_000, (FAR, NEAR, OWNER))) is None


def test_a_source_left_for_lagging_is_not_taken_back_for_its_path():
    assert chosen(other(10_000, 10_000, (OWNER,)), overdue={"other"}) is None
    lost = Offer("source", 10_000, 9_000)
    assert chosen(other(10_000, 10_000, (OWNER,)), source=lost, overdue={"other"}) is None


def test_a_source_left_for_lagging_is_taken_back_if_it_is_ahead_again():
    lost = Offer("source", 10_000, 9_000)
    assert chosen(other(11_000, 10_500, (OWNER,)), source=lost, overdue={"other"}) is not None


def test_the_shortest_then_the_furthest_path_is_taken():
    lost = Offer("source", 10_000, 9_000)
    long, near = other(99_000, 99_000, (NEAR, FAR, OWNER), "a"), other(9_000, 9_000, (FAR, OWNER), "b")
    further = other(9_500, 9_000, (NEAR, OWNER), "c")
    assert chosen(long, near, further, source=lost) == ("c", SwitchReason.PATH)


def test_without_paths_peers_that_are_ahead_are_taken_the_furthest_first():
    none = Expects(None, 10_000)
    offers = {"a": other(10_001, 0, proxy="a"), "b": other(10_500, 0, proxy="b")}
    assert choose(ME, offers, none) == ("b", SwitchReason.ADVERTISEMENT)
    assert choose(ME, {"a": other(10_000, 0, proxy="a")}, none) is None


def test_a_stalled_source_is_left_even_for_one_without_a_path():
    assert chosen(other(10_500, 10_001)) == ("other", SwitchReason.ADVERTISEMENT)
