"""Claims are all figures of a summary; another summary confirms them or not."""

import pytest

from analysis.claims import BrokenClaim, SummaryClaim, broken_claims, claims, claims_from_json, to_json
from topologies.errors import InputError

SUMMARY = {
    "verdict": "passed",
    "latency": {"p50_ms": 61.25, "error_ms": 0.5, "count": 7},
    "recovery": {"cut": {"switch_s": None}},
    "notes": ["one"],
}


def test_each_claim_has_its_path_error_bound_and_tolerance():
    assert claims(SUMMARY) == [
        SummaryClaim("verdict", "passed", None, 0.0),
        SummaryClaim("latency.p50_ms", 61.25, 0.5, 61.25 * 1e-9),
        SummaryClaim("latency.error_ms", 0.5, None, 0.5 * 1e-9),
        SummaryClaim("latency.count", 7, None, 0.0),
        SummaryClaim("recovery.cut.switch_s", None, None, 0.0),
        SummaryClaim("notes.length", 1, None, 0.0),
        SummaryClaim("notes.0", "one", None, 0.0),
    ]
    assert to_json(claims(SUMMARY))["claims"][0]["figure"] == "verdict"


def test_entries_with_names_may_come_in_any_order():
    links = [{"link": "r0-r1", "loss": 0.0}, {"link": "r1-r2", "loss": 0.5}]
    assert [claim.figure for claim in claims({"links": links})][1:3] == [
        "links.r0-r1.link",
        "links.r0-r1.loss",
    ]
    assert broken_claims({"links": links}, {"links": links[::-1]}) == []
    assert [each.figure for each in claims({"links": [links[0]] * 2})][1] == "links.0.link"


def test_an_equal_summary_confirms_all_claims():
    assert broken_claims(SUMMARY, SUMMARY) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"verdict": "failed"}, [BrokenClaim("verdict", "passed", "failed")]),
        ({"latency": {"p50_ms": 61.25 + 1e-8, "error_ms": 0.5, "count": 7}}, []),
        (
            {"latency": {"p50_ms": 61.26, "error_ms": 0.5, "count": 8}},
            [BrokenClaim("latency.p50_ms", 61.25, 61.26), BrokenClaim("latency.count", 7, 8)],
        ),
        (
            {"latency": {"p50_ms": None, "error_ms": 0.5, "count": 7}},
            [BrokenClaim("latency.p50_ms", 61.25, None)],
        ),
        (
            {"latency": {"p50_ms": 61.25, "error_ms": 0.5, "count": True}},
            [BrokenClaim("latency.count", 7, True)],
        ),
        ({"notes": []}, [BrokenClaim("notes.length", 1, 0), BrokenClaim("notes.0", "one", None)]),
        ({"more": 1}, [BrokenClaim("more", None, 1)]),
    ],
)
def test_unsupported_claims_are_named(found, expected):
    assert broken_claims(SUMMARY, SUMMARY | found) == expected


def test_claims_are_read_as_they_were_written():
    assert claims_from_json(to_json(claims(SUMMARY)), "claims.json") == claims(SUMMARY)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "claims.json: claims: holds no claims"),
        ({"claims": []}, "claims.json: claims: holds no claims"),
        ({"claims": {"verdict": "passed"}}, "claims.json: claims: holds no claims"),
        ({"claims": ["verdict"]}, "claims.json: claims.0: is not a claim"),
        ({"claims": [{"figure": "a", "value": 1, "bar": None}]}, "claims.json: claims.0: is not a claim"),
        ({"claims": [{"figure": "a", "value": [1], "bar": None, "tolerance": 0}]}, "0: is not a claim"),
        ({"claims": [{"figure": "a", "value": 10**400, "bar": None, "tolerance": 0}]}, "is not a claim"),
        ({"claims": [{"figure": "a", "value": 1, "bar": "0", "tolerance": 0}]}, "claims.0: is not a claim"),
        ({"claims": [{"figure": "a", "value": 1, "bar": None, "tolerance": -1}]}, "claims.0: is not a claim"),
        ({"claims": [{"figure": "a", "value": 1, "bar": None, "tolerance": 0}] * 2}, "names a figure twice"),
    ],
)
def test_invalid_claims_are_refused_in_one_line(content, said):
    with pytest.raises(InputError) as refused:
        claims_from_json(content, "claims.json")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
