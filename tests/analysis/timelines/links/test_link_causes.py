"""A violated period names its cause where the run's own data tell it."""

from analysis.timelines.links.link_causes import with_causes
from analysis.timelines.run_metadata import read_metadata
from tests.analysis.timelines.world import COUNTERS, ZERO, S, run_json, run_record


def row(**more):
    known = {"link": "r0-r1", "direction": "forward", "from_s": 3.0, "to_s": 9.0, "valid": False}
    return known | {"strays": 0, "lost_queue": 0, "reason": "late", "cause": None} | more


def cause(of=None, **fields):
    run = run_record(**fields)
    return with_causes([of or row()], run, read_metadata(run))[0]["cause"]


def test_nothing_is_named_that_the_data_do_not_tell():
    assert cause() is None


def test_figures_within_limits_have_no_cause():
    busy = [{"t_ns": ZERO + n * S, "busy": 1.0} for n in range(15)]
    assert cause(row(valid=True), cpu=busy) is None


def test_processors_are_named_that_were_full_in_the_period():
    busy = [{"t_ns": ZERO + n * S, "busy": 0.99 if n in (5, 6, 12) else 0.3} for n in range(15)]
    assert cause(cpu=busy) == "the processors of the machine were over 95% busy for 2 s of it"
    assert cause(row(from_s=7.5, to_s=10.0), cpu=busy) is None


def test_a_machine_that_stood_still_is_named():
    gap = [{"t_ns": ZERO + n * S, "busy": 0.3} for n in (3, 4, 7, 8)]
    assert cause(cpu=gap) == "the machine stalled for 2.0 s"


def test_the_emulators_counters_are_named_per_direction():
    counter = COUNTERS | {"dropped_kernel": 17}
    late = counter | {"dropped_kernel": 0, "lateness_p99_us": 7_200.0}
    assert (
        cause(counters=[counter]) == "the link emulator's receive ring was full: 17 frames did not reach it"
    )
    assert cause(counters=[late]) == "the link emulator was late by its own clock (p99 7.2 ms)"
    assert cause(counters=[counter | {"direction": "backward"}]) is None


def test_a_capture_that_dropped_is_named():
    captures = run_json()["captures"]
    lost = [each | {"kernel_drops": 5} if "r0-r1@r1" in each["file"] else each for each in captures]
    assert cause(captures=lost) == "the capture r0-r1@r1.pcap lost 5 packets, independently of the link"


def test_a_full_queue_and_frames_cut_elsewhere_are_named():
    said = "2 segments of offloaded frames were split at unknown boundaries"
    assert cause(row(strays=2)) == said
    assert (
        cause(row(strays=2, lost_queue=160))
        == f"{said}; its queue was full, as configured, and dropped 160 packets"
    )
