"""Every stream flows again after every cut that leaves a graph connected, in every order of the next steps.

Exhaustive for all connected graphs of up to five regions (`path_search`): two and three cuts where the search
is short, one cut everywhere; at random for the largest sets of cuts.
"""

from random import Random

import pytest

from node.protocols.sprinkler.region.expects import choose
from tests.node.protocols.sprinkler import path_search as paths


@pytest.mark.parametrize(("size", "most"), [(2, 1), (3, 3), (4, 6), (5, 1)])
def test_every_region_gets_the_stream_again_in_every_order_of_steps(size, most):
    for links, cut in paths.cases(size, most):
        assert paths.search(links, size, cut) is not None, f"{links} without {cut}: an order without end"


@pytest.mark.slow
def test_five_regions_recover_from_any_cuts_in_random_orders():
    rng = Random(1)
    cases = paths.cases(5, 6)
    for _ in range(200):
        links, cut = rng.choice(cases)
        state = paths.cut_links(rng.choice(paths.settled(links, 5)), cut)
        for _ in range(500):
            following = list(paths.steps(state, cut))
            if not following:
                break
            state = rng.choice(following)
        else:
            pytest.fail(f"{links} without {cut}: no rest after 500 steps")
        assert paths.flows(state), (links, cut, state)


def test_the_search_finds_that_a_source_kept_without_a_path_stalls_the_stream(monkeypatch):
    def faithful(region, offers, expects, overdue=()):
        return None if expects.source in offers else choose(region, offers, expects, overdue)

    monkeypatch.setattr(paths, "choose", faithful)
    ring = ((0, 1), (1, 2), (2, 3), (0, 3))
    with pytest.raises(AssertionError, match="ends as"):
        paths.search(ring, 4, frozenset({(0, 1)}))
