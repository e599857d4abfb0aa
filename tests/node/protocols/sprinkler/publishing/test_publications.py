"""Publications: known requests, void requests, and those that a follower lacks."""

from node.protocols.sprinkler.messages import Publication
from node.protocols.sprinkler.publishing.publications import Publications

ONE, OTHER = (0, "r0/driver-0", 1), (0, "r0/driver-1", 1)


def publication(first_seq, first_request, publisher=ONE, count=10):
    stream, name, incarnation = publisher
    return Publication(stream, first_seq, count, first_request, incarnation, name)


def three():
    publications = Publications(8, 8)
    taken = [publication(1, 1), publication(11, 1, OTHER), publication(21, 11)]
    for each in taken:
        publications.add(each)
    return publications, taken


def test_a_request_is_known_by_its_publisher_and_incarnation():
    publications, taken = three()
    assert publications.known(ONE, 11) is taken[2]
    assert publications.known(OTHER, 11) is None
    assert publications.known((*ONE[:2], 2), 1) is None


def test_unstored_publications_are_forgotten_with_their_head():
    publications, taken = three()
    publications.forget_beyond(0, 20)
    assert publications.known(ONE, 11) is None
    assert publications.known(OTHER, 1) is taken[1]


def test_reused_numbers_void_earlier_publications():
    """Check it, because otherwise a retry of a lost publication would be mistaken for the one in its
    place.
    """
    publications, _ = three()
    publications.add(publication(11, 11))
    assert publications.known(OTHER, 1) is None
    assert publications.known(ONE, 11).first_seq == 11


def test_a_follower_is_sent_everything_once_and_all_again_after_a_rewind():
    publications, taken = three()
    assert publications.take_unsent(2) == taken[:2]
    assert not publications.all_sent
    assert publications.take_unsent(2) == taken[2:]
    assert publications.all_sent
    publications.rewind()
    assert publications.take_unsent(9) == taken


def test_repeated_publications_void_nothing():
    """Add them again: a predecessor resends all in every configuration, and may die before it has
    finished.
    """
    publications, taken = three()
    assert not publications.add(publication(1, 1))
    assert publications.known(ONE, 11) is taken[2]
    assert publications.beyond(0, 0) == taken


def test_a_restarted_publisher_replaces_its_earlier_incarnation():
    publications = Publications(8, 2)
    for incarnation in range(5):
        publications.add(publication(1 + 10 * incarnation, 1, (*ONE[:2], incarnation)))
    publications.add(publication(101, 1, OTHER))
    assert publications.known((*ONE[:2], 4), 1) is not None
    assert publications.known((*ONE[:2], 3), 1) is None
    assert publications.forgotten == 0


def test_beyond_the_limit_the_longest_silent_publisher_is_forgotten():
    publications = Publications(8, 2)
    for number in range(3):
        publications.add(publication(1 + 10 * number, 1, (0, f"r0/driver-{number}", 1)))
    assert [publications.known((0, f"r0/driver-{number}", 1), 1) is None for number in range(3)] == [
        True,
        False,
        False,
    ]
    assert publications.forgotten == 1


def test_a_follower_is_sent_what_replaced_a_void_publication():
    publications, taken = three()
    publications.take_unsent(9)
    anew = publication(21, 1, (0, "r0/driver-2", 1))
    publications.add(anew)
    assert publications.take_unsent(9) == [anew]
    assert publications.beyond(0, 10) == [taken[1], anew]


def test_each_publishers_latest_publications_are_kept_in_bounded_memory():
    publications = Publications(4, 2)
    for number in range(5000):
        publications.add(publication(1 + 10 * number, 1 + number, ONE))
    assert publications.known(ONE, 4996) is None
    assert publications.known(ONE, 4997) is not None
    assert len(publications.take_unsent(9999)) == 4
    assert len(publications._orders[0]) < 200
    for number in range(5000, 5003):
        publications.add(publication(1 + 10 * number, 1, (0, f"r0/driver-{number}", 1)))
    assert publications.known(ONE, 5000) is None
