"""Results of replays: a rate with its interval."""

import json

import pytest

from analysis.intervals import wilson_interval
from testbed.campaign.hunting.counts import ReplayCounts, read_counts
from testbed.campaign.hunting.replaying import broke_again, replay
from topologies.errors import InputError


def test_the_interval_is_wilsons_score_interval():
    low, high = wilson_interval(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)  # Newcombe (1998), by hand
    assert wilson_interval(0, 10)[0] == 0
    assert wilson_interval(10, 10)[1] == pytest.approx(1)
    with pytest.raises(ValueError, match="a rate needs at least one run"):
        wilson_interval(0, 0)


def test_counts_are_kept_by_backend(tmp_path):
    (tmp_path / "replays.json").write_text(json.dumps({"local": {"runs": 4, "broke": 3}}))
    assert read_counts(tmp_path) == {"local": ReplayCounts(4, 3)}
    assert ReplayCounts(4, 3).with_one(broke=True) == ReplayCounts(5, 4)
    assert ReplayCounts(4, 3).text == "broke in 3 of 4 runs: a rate of 30% to 95% (Wilson, 95 %)"
    (tmp_path / "replays.json").write_text(json.dumps({"local": {"runs": 4, "broke": 5}}))
    with pytest.raises(InputError, match="of them `broke`"):
        read_counts(tmp_path)


def test_a_run_broke_again_if_it_broke_what_was_found():
    summary = {
        "events": {"lost": 3, "duplicated": 5},
        "verdict": "failed",
        "subscriptions": {"unconfirmed": 0},
        "expectations": [
            {"text": "events.lost >= 0", "held": True},  # of a region that lost its memory
            {"text": "streams.r0.1.lost == 0", "held": False},
            {"text": "events.duplicated >= 0", "held": True},
        ],
    }
    assert broke_again({"kind": "lost"}, summary, drained=True)
    assert not broke_again({"kind": "duplicated"}, summary, drained=True)
    assert not broke_again({"kind": "unconfirmed"}, summary, drained=True)
    assert not broke_again({"kind": "stalled"}, summary, drained=True)
    assert broke_again({"kind": "stalled"}, summary, drained=False)
    assert broke_again({"kind": "crashed"}, summary, drained=True)


SILENT = """
name: silent
topology: two-regions
system: sprinkler
roles: {proxy: 1, driver: 1, client: 1}
workload: {event_size: 10B, rate: 20/s}
duration: 25s
captures: none
faults: [{name: apart, at: 1s, separate: r0/driver-0, from: [r0/proxy-0]}]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("text", "code"), [(SILENT, 1), (SILENT.replace("r0/driver-0", "r0/client-0"), 0)])
def test_a_silent_publisher_counts_as_broken_again(text, code, tmp_path):
    (tmp_path / "experiment.yaml").write_text(text)
    said = {
        "violation": {"kind": "silent"},
        "said": "r0/driver-0 stopped publishing",
        "signature": "s",
    }
    case = {"seed": 1, "settings": {}, "disturbances": []}
    (tmp_path / "finding.json").write_text(json.dumps({"case": case, **said}))
    assert replay(tmp_path, 1, "simulator") == code
