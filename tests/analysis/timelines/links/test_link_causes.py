"""A violated period names its cause if the run's data show it."""

import pytest

from analysis.timelines.links.link_causes import with_causes
from analysis.timelines.run_metadata import read_metadata
from tests.analysis.timelines.world import COUNTERS, ZERO, S, run_json, run_record


def row(**more):
    known = {"link": "r0-r1", "direction": "forward", "from_s": 3.0, "to_s": 9.0, "valid": False}
    return known | {"strays": 0, "lost_queue": 0, "reason": "late", "cause": None} | more


def cause(of=None, **fields):
    run = run_record(**fields)
    return with_causes([of or row()], run, read_metadata(run))[0]["cause"]


def busy(*full, but=()):
    seconds = [n for n in range(15) if n not in but]
    return [{"t_ns": ZERO + n * S, "busy": 0.99 if n in full else 0.3} for n in seconds]


DROPPED = COUNTERS | {"dropped_kernel": 17}
LATE = COUNTERS | {"lateness_p99_us": 7_200.0}
SPLIT = "2 segments of offloaded frames were split at unknown boundaries"


@pytest.mark.parametrize(
    ("of", "fields", "found"),
    [
        ({}, {}, None),
        ({"valid": True}, {"cpu": busy(*range(15))}, None),
        ({}, {"cpu": busy(5, 6, 12)}, "the processors of the machine were over 95% busy for 2 s of it"),
        ({"from_s": 7.5, "to_s": 10.0}, {"cpu": busy(5, 6, 12)}, None),
        ({}, {"cpu": busy(but=(5, 6))}, "the machine stalled for 2.0 s"),
        (
            {},
            {"counters": [DROPPED]},
            "the link emulator's receive ring was full: 17 frames did not reach it",
        ),
        ({}, {"counters": [LATE]}, "the link emulator was late by its own clock (p99 7.2 ms)"),
        ({}, {"counters": [DROPPED | {"direction": "backward"}]}, None),
        ({"strays": 2}, {}, SPLIT),
        (
            {"strays": 2, "lost_queue": 160},
            {},
            f"{SPLIT}; its queue was full, as configured, and dropped 160 packets",
        ),
    ],
)
def test_a_cause_is_named_if_the_data_of_its_period_show_it(of, fields, found):
    assert cause(row(**of), **fields) == found


def test_a_capture_with_drops_is_named():
    captures = run_json()["captures"]
    lost = [each | {"kernel_drops": 5} if "r0-r1@r1" in each["file"] else each for each in captures]
    assert cause(captures=lost) == "the capture r0-r1@r1.pcap lost 5 packets, independently of the link"
