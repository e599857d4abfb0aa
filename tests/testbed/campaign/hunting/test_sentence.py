"""A violation is described in one sentence, the same for violations with a likely common cause."""

import pytest

from experiments.hunting.case import HuntCase, HuntDisturbance
from testbed.campaign.hunting.sentence import most_serious, sentence, signature

CUT = HuntDisturbance("cut", 4_000_000, 2_100_000, ("r0", "r2"), (), "forward")
KILL = HuntDisturbance("crash", 5_000_000, 300_000, ("r0/proxy-1",))
POWER = HuntDisturbance("power", 8_000_000, 500_000, ("r1",))


def violation(kind: str = "lost", count: int = 12, said: str = "") -> dict[str, object]:
    example = {"client": "r1/client-2", "role": "client", "stream": "r0", "count": count}
    return {"kind": kind, "count": count, "said": said, "examples": [example]}


def test_a_sentence_names_process_violation_and_disturbances():
    said = sentence(violation(), HuntCase(1, {"roles.proxy": 2, "duration": "14s"}, (CUT, KILL, POWER)))
    assert said == (
        "r1/client-2 never got 12 events of stream r0, after the link r0-r2 was cut (forward only) for 2.1 s,"
        " while r0/proxy-1 was killed and restarted 0.3 s later, and then region r1 lost power for 0.5 s"
        " (with roles.proxy 2)."
    )


def test_a_network_that_was_drawn_is_reported_in_a_few_words():
    ring = {"kind": "ring", "regions": 5, "delays": {"from": "4ms", "to": "4ms"}}
    said = sentence(violation(count=1), HuntCase(1, {"topology": ring}, ()))
    assert said.endswith("without any disturbance (with topology a ring of 5 regions, 4ms apart).")


@pytest.mark.parametrize("kind", ["crashed", "unheard-of"])
def test_a_breach_without_a_template_is_quoted(kind):
    said = sentence(violation(kind, said="r0/proxy-0 failed: KeyError\n  more"), HuntCase(1, {}, (KILL,)))
    assert said.startswith("r0/proxy-0 failed: KeyError, after r0/proxy-1 was killed")


def test_a_cause_consists_of_kind_roles_and_disturbances():
    assert (
        signature(violation(), HuntCase(1, {}, (CUT, KILL, POWER)))
        == "lost client after crash-proxy cut power"
    )
    assert signature(violation(), HuntCase(2, {}, ())) == "lost client after nothing"


def test_the_most_serious_violation_represents_a_run():
    kinds = ["stalled", "lost", "duplicated", "unheard-of"]
    assert most_serious([violation(kind) for kind in kinds])["kind"] == "duplicated"
