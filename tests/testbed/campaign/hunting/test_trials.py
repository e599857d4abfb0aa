"""Cases that no system can survive are refused, whatever their result."""

import pytest

from experiments.hunting.case import HuntCase
from experiments.hunting.case_experiment import hunt_base
from experiments.loader import load_experiment
from testbed.campaign.hunting.trials import VirtualTimeTrials
from testbed.campaign.hunting.worker import DEFAULT_BUILD
from testbed.errors import TestbedError


def narrow(rate: str) -> dict[str, object]:
    return {
        "name": "narrow",
        "regions": {"a": {}, "b": {}},
        "links": [{"between": ["a", "b"], "delay": "1ms", "rate": rate}],
    }


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ("1kbit", "not ready after 30 s of virtual time: b/"),
        (
            "60kbit",
            r"more was sent from . to . than their link carries: at the end of the workload",
        ),
    ],
)
def test_overloaded_links_are_no_finding(rate, said):
    settings = {"topology": narrow(rate), "duration": "14s", "workload.rate": "2/s"}
    trials = VirtualTimeTrials(hunt_base(load_experiment("scribe-nemesis")), DEFAULT_BUILD)
    with pytest.raises(TestbedError, match=said):
        trials.tried(HuntCase(1, settings, ()), None)
