"""A machine that disturbed the run makes it invalid, each kind of disturbance with its reason."""

import pytest

from analysis.timelines.machine_health import capture_drops, cpu_max, machine_problems
from analysis.timelines.run_metadata import read_metadata
from experiments.records.run_record import record_from_json
from tests.analysis.timelines.world import COUNTERS, MS, ZERO, S, run_json, run_record


def problems(*overrides, **fields):
    run = run_record(*overrides, **fields)
    return machine_problems(run, read_metadata(run))


def busy(*seconds):
    return [{"t_ns": ZERO + n * S, "busy": value} for n, value in enumerate(seconds, 1)]


def test_an_undisturbed_run_has_no_problems():
    assert problems() == []


def test_dropped_packets_are_named_by_capture():
    captures = [
        {"file": "captures/a.pcap", "kernel_drops": 3},
        {"file": "captures/b.pcap", "kernel_drops": 0},
    ]
    assert problems(captures=captures) == ["captures/a.pcap: the kernel dropped 3 packets"]
    assert capture_drops(run_record(captures=captures)) == 3


def test_a_capture_that_cannot_say_is_no_proof():
    captures = [{"file": "captures/a.pcap", "kernel_drops": None}]
    assert problems(captures=captures) == ["captures ended without reporting their drops: captures/a.pcap"]
    assert capture_drops(run_record(captures=captures)) is None


def test_frames_lost_before_a_link_are_problems():
    counters = [COUNTERS | {"dropped_kernel": 2}]
    assert problems(counters=counters) == ["link r0-r1 forward: 2 frames were lost on their way to it"]


def test_two_saturated_seconds_in_a_row_are_saturation_and_one_is_not():
    assert problems(cpu=busy(0.5, 0.99, 0.5, 0.99)) == []
    assert problems(cpu=busy(0.5, 0.99, 0.97, 0.3)) == ["processors were over 95% busy for 2 s in a row"]


def test_only_the_running_time_counts_for_the_processors():
    run = run_record(cpu=[{"t_ns": ZERO - n * S, "busy": 1.0} for n in range(1, 4)] + busy(0.25, 0.5))
    assert machine_problems(run, read_metadata(run)) == []
    assert cpu_max(run, read_metadata(run)) == 0.5


def test_missing_samples_are_a_stall():
    samples = [*busy(0.3, 0.3), {"t_ns": ZERO + 3700 * MS, "busy": 0.4}]
    assert problems(cpu=samples) == ["the machine stalled for 0.7 s"]


def test_late_and_failed_changes_are_problems():
    run = run_json()
    run["changes"][0]["applied_ns"] += 250 * MS
    run["changes"][1]["applied_ns"] = None
    record = record_from_json(run)
    assert machine_problems(record, read_metadata(record)) == [
        "fault cut was applied to r2-r3 forward 250 ms late",
        "fault cut could not be applied to r2-r3 backward",
    ]


@pytest.mark.parametrize(
    ("trips_us", "problem"),
    [
        ([34_100.0, 34_300.0, 60_000.0], None),
        ([36_100.0, 36_300.0, 36_400.0], "round trip r0-r1 before the run: 36.30 ms, configured 34.00 ms"),
        (
            [33_000.0, 34_000.0, 34_100.0],
            "round trip r0-r1 before the run: only 33.00 ms, configured 34.00 ms",
        ),
        ([], "round trip r0-r1 before the run: no answer"),
    ],
)
def test_round_trips_are_held_against_the_links_and_lans(trips_us, problem):
    probe = {"when": "before", "from": "r0", "to": "r1", "rtt_us": trips_us}
    assert problems(probes=[probe]) == ([problem] if problem else [])


def test_after_a_cut_that_lasts_no_answer_is_right():
    probe = {"when": "after", "from": "r2", "to": "r3", "rtt_us": []}
    cut = ("faults=[{name: cut, at: 5s, cut: [r2, r3]}]",)
    assert problems(*cut, probes=[probe]) == []
    assert problems(*cut, probes=[{**probe, "rtt_us": [34_000.0]}]) == [
        "round trip r2-r3 after the run: an answer came although the link was cut"
    ]


@pytest.mark.parametrize(
    ("when", "trip_ms", "problem"),
    [
        ("before", 34.1, None),
        ("before", 64.1, "round trip r0-r1 before the run: 64.10 ms, configured 34.00 ms"),
        ("after", 64.1, None),
        ("after", 94.1, "round trip r0-r1 after the run: 94.10 ms, configured 84.00 ms"),
        ("after", 30.1, "round trip r0-r1 after the run: only 30.10 ms, configured 44.00 ms"),
    ],
)
def test_round_trips_over_a_traced_delay_are_held_against_its_range(when, trip_ms, problem):
    run = run_json(probes=[{"when": when, "from": "r0", "to": "r1", "rtt_us": [trip_ms * 1000] * 3}])
    link = next(link for link in run["plan"]["links"] if link["name"] == "r0-r1")
    steps = {"file": "d.csv", "sha256": "", "period_us": 200_000, "values": [20_000, 40_000]}
    for way in ("forward", "backward"):
        link[way]["delay_traced"] = True
        link[f"{way}_trace"] = {"rate": None, "delay": steps}
    record = record_from_json(run)
    assert machine_problems(record, read_metadata(record)) == ([problem] if problem else [])


def test_no_answer_over_a_rate_that_pauses_is_no_problem():
    run = run_json(probes=[{"when": "after", "from": "r0", "to": "r1", "rtt_us": []}])
    link = next(link for link in run["plan"]["links"] if link["name"] == "r0-r1")
    steps = {"file": "r.trace", "sha256": "", "period_us": 200_000, "values": [0, 1_000_000]}
    link["forward"] |= {"rate_traced": True, "rate_bits_per_s": 500_000}
    link["forward_trace"] = {"rate": steps, "delay": None}
    record = record_from_json(run)
    assert machine_problems(record, read_metadata(record)) == []


def test_a_slow_rate_lengthens_round_trips_and_corruption_may_take_all_answers() -> None:
    for trips_us, parameter in ([37_000.0] * 3, {"rate_bits_per_s": 250_000}), ([], {"corrupt": 1.0}):
        run = run_json(probes=[{"when": "before", "from": "r0", "to": "r1", "rtt_us": trips_us}])
        link = next(link for link in run["plan"]["links"] if link["name"] == "r0-r1")
        for way in ("forward", "backward"):
            link[way] |= parameter
        record = record_from_json(run)
        assert machine_problems(record, read_metadata(record)) == []


def test_a_round_trip_between_selected_hosts_has_their_delay() -> None:
    given = ["faults=[{name: slow, at: 6s, set: [r0, r1], of: r0/proxy-0, delay: 50ms}]", "expect=[]"]
    for trips_us, problems in (([104_000.0], 0), ([34_000.0], 1)):
        run = run_json(*given)
        run["probes"] = [{"when": "after", "from": "r0", "to": "r1", "rtt_us": trips_us}]
        record = record_from_json(run)
        assert len(machine_problems(record, read_metadata(record))) == problems
