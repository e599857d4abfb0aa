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


def drops(**by_capture):
    return [{"file": f"captures/{name}.pcap", "kernel_drops": count} for name, count in by_capture.items()]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, []),
        ({"captures": drops(a=3, b=0)}, ["captures/a.pcap: the kernel dropped 3 packets"]),
        ({"captures": drops(a=None)}, ["captures ended without reporting their drops: captures/a.pcap"]),
        (
            {"counters": [COUNTERS | {"dropped_kernel": 2}]},
            ["link r0-r1 forward: 2 frames were lost on their way to it"],
        ),
        ({"cpu": busy(0.5, 0.99, 0.5, 0.99)}, []),
        ({"cpu": busy(0.5, 0.99, 0.97, 0.3)}, ["processors were over 95% busy for 2 s in a row"]),
        ({"cpu": [{"t_ns": ZERO - n * S, "busy": 1.0} for n in range(1, 4)] + busy(0.25, 0.5)}, []),
        (
            {"cpu": [*busy(0.3, 0.3), {"t_ns": ZERO + 3700 * MS, "busy": 0.4}]},
            ["the machine stalled for 0.7 s"],
        ),
    ],
    ids=[
        "nothing", "dropped packets by capture", "a capture that cannot say", "frames lost before a link",
        "one busy second", "two busy seconds in a row", "busy before time 0", "missing samples are a stall",
    ],
)  # fmt: skip
def test_each_disturbance_of_the_run_is_named(fields, found):
    assert problems(**fields) == found


def test_drops_and_the_busiest_second_of_the_run_are_counted():
    assert capture_drops(run_record(captures=drops(a=3, b=0))) == 3
    assert capture_drops(run_record(captures=drops(a=None))) is None
    run = run_record(cpu=[{"t_ns": ZERO - S, "busy": 1.0}, *busy(0.25, 0.5)])
    assert cpu_max(run, read_metadata(run)) == 0.5


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
def test_round_trips_are_compared_with_links_and_lans(trips_us, problem):
    probe = {"when": "before", "from": "r0", "to": "r1", "rtt_us": trips_us}
    assert problems(probes=[probe]) == ([problem] if problem else [])


def test_no_answer_is_expected_after_a_permanent_cut():
    probe = {"when": "after", "from": "r2", "to": "r3", "rtt_us": []}
    cut = ("faults=[{name: cut, at: 5s, cut: [r2, r3]}]",)
    assert problems(*cut, probes=[probe]) == []
    assert problems(*cut, probes=[{**probe, "rtt_us": [34_000.0]}]) == [
        "round trip r2-r3 after the run: an answer came although the link was cut"
    ]


def over_r0_r1(change, trips_ms, when="before", given=()):
    """Return the problems of a probe over the link r0-r1. change: adapts the link's plan."""
    trips_us = [ms * 1000 for ms in trips_ms]
    run = run_json(*given, probes=[{"when": when, "from": "r0", "to": "r1", "rtt_us": trips_us}])
    change(next(link for link in run["plan"]["links"] if link["name"] == "r0-r1"))
    record = record_from_json(run)
    return machine_problems(record, read_metadata(record))


def traced(link):
    steps = {"file": "d.csv", "sha256": "", "period_us": 200_000, "values": [20_000, 40_000]}
    for way in ("forward", "backward"):
        link[way]["delay_traced"] = True
        link[f"{way}_trace"] = {"rate": None, "delay": steps}


def pausing(link):
    steps = {"file": "r.trace", "sha256": "", "period_us": 200_000, "values": [0, 1_000_000]}
    link["forward"] |= {"rate_traced": True, "rate_bits_per_s": 500_000}
    link["forward_trace"] = {"rate": steps, "delay": None}


def with_parameters(**parameters):
    return lambda link: [link[way].update(parameters) for way in ("forward", "backward")]


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
def test_round_trips_over_a_traced_delay_are_compared_with_its_range(when, trip_ms, problem):
    assert over_r0_r1(traced, [trip_ms] * 3, when) == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("change", "trips_ms"),
    [
        (pausing, []),
        (with_parameters(rate_bits_per_s=250_000), [37.0] * 3),
        (with_parameters(corrupt=1.0), []),
    ],
    ids=["a rate that pauses may take all answers", "a slow rate lengthens them", "corruption takes them"],
)
def test_answers_delayed_by_the_configured_link_are_accepted(change, trips_ms):
    assert over_r0_r1(change, trips_ms, "after") == []


def test_a_round_trip_between_selected_hosts_has_their_delay():
    given = ("faults=[{name: slow, at: 6s, set: [r0, r1], of: r0/proxy-0, delay: 50ms}]", "expect=[]")
    assert over_r0_r1(lambda _: None, [104.0], "after", given) == []
    assert len(over_r0_r1(lambda _: None, [34.0], "after", given)) == 1
