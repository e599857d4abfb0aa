"""Complete analyses of run directories: every number of the summary, and runs with missing parts."""

import json
import shutil
import subprocess

import pyarrow.parquet as pq
import pytest

from analysis import run_tasks
from analysis.errors import AnalysisError
from analysis.pipeline import analyze, analyze_here
from analysis.run_findings import FROM_ACKNOWLEDGEMENT, NO_HOST_CAPTURES, NO_LINK_CAPTURES, NO_RECORDS
from analysis.timelines import schemas
from analysis.timelines.delivery import deliveries
from analysis.timelines.latency import PHASES
from analysis.timelines.run_metadata import read_metadata
from analysis.timelines.tasks.packets import MessagesToEvents
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from tests.analysis.timelines.captured import SUBSCRIBED, write_run
from tests.analysis.timelines.world import (
    BATCH,
    CUT,
    END,
    EVERY,
    LAN,
    MS,
    REGIONS,
    ZERO,
    S,
    hop_ns,
    run_json,
    simulate,
)  # fmt: skip
from topologies.errors import InputError

pytestmark = pytest.mark.slow


def nothing_said(_: str) -> None:
    """No progress is wanted."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return an analysed run with all its files."""
    directory = write_run(tmp_path_factory.mktemp("runs") / "a-run", simulate(), run_json(), SUBSCRIBED)
    analyze(directory, progress=nothing_said)
    return directory


@pytest.fixture
def copy(whole, tmp_path):
    """Return a copy for a test to damage."""
    return RunDirectory(shutil.copytree(whole.path, tmp_path / "a-run"))


def test_messages_of_a_host_in_many_parts_give_the_same_events(whole, tmp_path):
    host = "r2-proxy-0"
    record = whole.read_run()
    messages = whole.table("messages") / f"part-{host}.parquet"
    parts = tmp_path / "parts.parquet"
    pq.write_table(pq.read_table(messages), parts, row_group_size=37)
    assert pq.read_metadata(parts).num_row_groups > 20
    found = []
    for number, file in enumerate((messages, parts)):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = MessagesToEvents(file, folder, read_metadata(record))()
        places = ["link", "direction"]
        wan = told["wan_messages"].group_by(places).aggregate([("messages", "sum"), ("bytes", "sum")])
        written = pq.read_table(folder / f"{host}.parquet")
        assert written.schema == schemas.EVENTS
        found.append((told | {"wan_messages": wan.sort_by("link").sort_by("direction")}, ordered(written)))
    (of_whole, events), (of_parts, of_many) = found
    assert events == of_many
    assert len(events) > 1000
    assert of_whole.keys() == of_parts.keys()
    for name, table in of_whole.items():
        assert of_parts[name].to_pylist() == table.to_pylist()


def ordered(events):
    return sorted(events.to_pylist(), key=lambda row: tuple(map(str, row.values())))


def set_run(directory, **fields):
    content = read_json(directory.run_json) | fields
    directory.run_json.write_text(json.dumps(content))


def test_the_summary_has_every_number(whole):
    summary = whole.read_summary()
    direct, detour = hop_ns("r2", "r3"), hop_ns("r2", "r1") + hop_ns("r1", "r3")
    switch_s = (1 * S + 2 * LAN) / 1e9
    # 2 x 50 of 2800 batches wait for the switch, for 1000, 980, 960 ms...; p99 is the 29th from above.
    latency = summary.pop("latency")
    phases = {name: latency.pop(name) for name in tuple(latency) if name.startswith(PHASES)}
    farthest_ms = {region: max(hop_ns(region, other) for other in REGIONS) / MS + 2 for region in REGIONS}
    assert [phases["before_p50_ms"], phases["before_p95_ms"]] == sorted(farthest_ms.values())[1::2]
    assert phases["during_p95_ms"] >= detour / MS
    assert phases["after_p95_ms"] < phases["during_p95_ms"]
    assert latency == {
        "mean_ms": pytest.approx(67.383, abs=0.001), "p50_ms": 49.0, "p95_ms": 81.0, "p99_ms": 720.0,
        "max_ms": 1000.0,
    }  # fmt: skip
    assert summary.pop("throughput") == {
        "events_per_s": pytest.approx(2000, rel=0.01),
        "slowest_client_events_per_s": pytest.approx(2000, rel=0.01),
        "bytes_per_s": pytest.approx(20_000, rel=0.01),
    }
    links = {link.pop("link"): link for link in summary["fidelity"].pop("links")}
    delays = ("delay_ms", "delay_p50_ms", "delay_p99_ms")
    assert {name: tuple(link[delay] for delay in delays) for name, link in links.items()} == {
        "r0-r1": (15, 15, 15), "r2-r3": (15, 15, 15), "r0-r2": (40, 40, 40),
        "r0-r3": (45, 45, 45), "r1-r2": (35, 35, 35), "r1-r3": (40, 40, 40),
    }  # fmt: skip
    assert {name: link["state"] for name, link in links.items() if name != "r2-r3"} == dict.fromkeys(
        ("r0-r1", "r0-r2", "r0-r3", "r1-r2", "r1-r3"), "proven"
    )
    ways = [f"link r2-r3 {way} from 5.0 s on: no packet tried to cross" for way in ("forward", "backward")]
    assert (links["r2-r3"]["state"], links["r2-r3"]["unproven"]) == ("unproven", ways)
    rest = [expectation.pop("unproven", None) for expectation in summary["expectations"]]
    implied = [each["text"] for each in summary["expectations"]].index("events.published > 0")
    on_nothing = [None] * 3  # the fidelity, and that anything was published, and came
    assert rest == [ways] * (implied - 1) + on_nothing + [ways] * (len(rest) - implied - 2)
    recovery = summary.pop("recovery")
    assert recovery["cut"] == {
        "detect_s": (900 * MS - hop_ns("r3", "r1")) / 1e9,
        "resubscribe_s": (950 * MS - hop_ns("r2", "r1")) / 1e9,
        "switch_s": switch_s,
        "catch_up_s": (1 * S + detour + 4 * LAN) / 1e9,
        "settled_s": switch_s,
        "backlog_events": 500,
        "lost": 0,
        "duplicated": 0,
        "out_of_order": 0,
        "affected_pairs": 4,
        "first_route_s": switch_s,
        "rate_derived_s": 1.0,
        "loss_derived_s": pytest.approx(46 * EVERY / 1e9, rel=0.01),
        "connectivity_lost_s": pytest.approx(switch_s - LAN / 1e9),
        "impaired": 4 * 46 * BATCH,
    }
    assert recovery["restore"]["returned_s"] == pytest.approx(0.5 + detour / 1e9, abs=0.02)
    assert recovery["restore"]["detect_s"] == (450 * MS - direct) / 1e9
    assert summary.pop("convergence") == {
        "last_change_s": 9.0,
        "connected": True,
        "full_s": (3 * MS + detour + 2 * LAN) / 1e9,  # stream 3 is published 3 ms after the others
        "median_s": 0.0425,
        "beyond_way_s": (3 * MS + 2 * LAN) / 1e9,
        "wait_max_s": (detour + 2 * LAN) / 1e9,
        "missed": 0,
        "stalled": 0,
        "late_switches": 0,
        "tcp_retry_s": None,
    }
    crossed = summary.pop("wan")
    batches, asked = 4 * 3 * 14 * S // EVERY, 4  # each batch to three other regions
    assert (crossed["copies_mean"], crossed["copies_max"]) == (1.0, 1)
    assert crossed["messages"] == pytest.approx(batches + asked, abs=20)  # some were lost in the cut
    of_all = {name: value for name, value in summary["events"].items() if name != "unordered_publishers"}
    of_each = {name: value // 4 for name, value in of_all.items()}
    assert summary.pop("streams") == dict.fromkeys(REGIONS, of_each)
    assert summary == {
        "schema": 1,
        "run": "a-run",
        "experiment": "link-failure",
        "seed": 1,
        "links": "relay",
        "verdict": "passed",
        "fidelity": {"valid": True, "reasons": [], "notes": [], "capture_drops": 0, "cpu_max": 0.3},
        "events": {
            "published": 4 * 7000, "delivered": 8 * 4 * 7000, "tombstoned": 0, "lost": 0, "stray": 0,
            "duplicated": 0, "out_of_order": 0, "resurrected": 0, "corrupted": 0, "unverified": 0,
            "unordered_publishers": 0, "published_twice": 0, "unacknowledged": 0,
        },
        "faults": [
            {"name": "cut", "kind": "cut", "target": "r2-r3", "requested_s": 5.0, "applied_s": 5.0},
            {"name": "restore", "kind": "restore", "target": "r2-r3", "requested_s": 9.0, "applied_s": 9.0},
        ],
        "agreement": {"held": True, "compared": 36, "disagreements": [], "left_out": []},
        "problems": [],
        "expectations": [
            {"text": "events.lost == 0", "value": 0, "held": True},
            {"text": "events.duplicated == 0", "value": 0, "held": True},
            {"text": "events.out_of_order == 0", "value": 0, "held": True},
            {"text": "events.corrupted == 0", "value": 0, "held": True},
            {"text": "events.resurrected == 0", "value": 0, "held": True},
            {"text": "events.unordered_publishers == 0", "value": 0, "held": True},
            {"text": "recovery.cut.switch_s <= 2", "value": switch_s, "held": True},
            {"text": "fidelity.valid == true", "value": True, "held": True},
            {"text": "events.published > 0", "value": 4 * 7000, "held": True},
            {"text": "events.delivered > 0", "value": 8 * 4 * 7000, "held": True},
            {"text": "events.stray == 0", "value": 0, "held": True},
            {"text": "events.published_twice == 0", "value": 0, "held": True},
            {"text": "convergence.stalled == 0", "value": 0, "held": True},
        ],
    }  # fmt: skip


def test_a_repeated_analysis_gives_the_same_result(copy):
    told, before = [], copy.summary_json.read_bytes()
    shutil.rmtree(copy.table("events"))
    analyze(copy, progress=told.append)
    assert copy.summary_json.read_bytes() == before
    assert told == ["reading packets and messages", "following events", "following streams", "summing up"]
    for name, schema in {
        "events": schemas.EVENTS, "throughput": schemas.THROUGHPUT, "latency": schemas.LATENCY,
        "recovery": schemas.RECOVERY, "fidelity": schemas.FIDELITY, "deliveries": schemas.DELIVERIES,
    }.items():  # fmt: skip
        table = pq.read_table(copy.table(name))
        assert table.schema.equals(schema), name
        assert table.num_rows, name
    assert not list(copy.analysis.glob(".making-*"))


def test_clients_are_divided_into_tasks_of_bounded_size(copy, monkeypatch):
    groups, before = [], read_json(copy.summary_json)["events"]
    checked = deliveries.check_groups
    monkeypatch.setattr(deliveries, "check_groups", lambda count: (groups.append(count), checked(count)))
    monkeypatch.setattr(run_tasks, "GROUPS_TOGETHER", 8)
    analyze_here(copy, progress=nothing_said)
    assert read_json(copy.summary_json)["events"] == before
    assert max(groups) <= 8


def test_a_dead_node_and_missing_records_fail_the_run(copy):
    path = copy.host_deliveries("r0-client-0")
    path.write_bytes(path.read_bytes()[: -40 * 5])
    processes = read_json(copy.run_json)["processes"]
    processes[0]["exit"] = {"code": None, "signal": 11, "time_ns": ZERO + END, "expected": False}
    set_run(copy, processes=processes, problems=["r0/proxy-0 ended unexpectedly (signal 11)"])
    summary = analyze_here(copy, progress=nothing_said)
    assert summary["verdict"] == "failed"
    assert summary["agreement"]["held"] is False
    assert summary["agreement"]["disagreements"][0].startswith("stream s")
    assert summary["events"]["lost"] == 50
    assert summary["problems"] == ["r0/proxy-0 ended unexpectedly (signal 11)"]
    assert summary["agreement"]["left_out"] == ["r0-proxy-0: its process did not run from beginning to end"]


def test_without_captures_records_are_used_and_noted(tmp_path):
    run = run_json("captures=none")
    directory = write_run(tmp_path / "a-run", simulate(), run, [])
    log = {"level": "info", "event": "source_switched"}
    for here, there, stream in (("r3", "r2", 2), ("r2", "r3", 3)):
        owner = f"{there}/proxy-0"
        started = log | {"t_ns": ZERO - S, "from": None, "to": owner, "why": "direct", "stream": stream}
        switched = log | {"t_ns": ZERO + CUT + 900 * MS, "from": owner, "to": "r1/proxy-0", "stream": stream}
        lines = [json.dumps(record) for record in (started, switched | {"why": "advertisement"})]
        directory.log(f"{here}-proxy-0").write_text("\n".join(lines) + '\n{"t_ns": 17000')
        with directory.log("r1-proxy-0").open("a") as file:
            file.write(json.dumps(started) + "\n")
    summary = analyze_here(directory, progress=nothing_said)
    assert {NO_HOST_CAPTURES, NO_LINK_CAPTURES, FROM_ACKNOWLEDGEMENT} <= set(summary["fidelity"]["notes"])
    assert (summary["fidelity"]["valid"], summary["fidelity"]["reasons"]) == (True, [])
    assert summary["fidelity"]["links"] == []
    assert summary["agreement"]["held"] is None
    assert summary["events"]["delivered"] == 8 * 4 * 7000
    assert summary["recovery"]["cut"]["switch_s"] == (1 * S + 2 * LAN) / 1e9
    assert summary["recovery"]["cut"]["detect_s"] == summary["recovery"]["cut"]["resubscribe_s"] == 0.9
    assert summary["latency"]["p50_ms"] > 40
    assert summary["verdict"] == "passed"


def test_a_damaged_capture_makes_the_run_invalid_but_the_other_clients_still_count(copy):
    path = copy.capture("r0-client-0-eth0.pcap")
    path.write_bytes(path.read_bytes()[:-5000])
    summary = analyze_here(copy, progress=nothing_said)
    assert summary["verdict"] == "invalid"
    assert summary["fidelity"]["reasons"][0].startswith("r0-client-0: its capture is damaged: ")
    assert summary["latency"]["max_ms"] == 1000.0
    assert summary["agreement"]["held"] is True


def test_captures_of_links_alone_still_measure_the_links(tmp_path):
    run = run_json("captures={snaplen: full, where: [gateways]}")
    directory = write_run(tmp_path / "a-run", simulate(), run, [])
    summary = analyze_here(directory, progress=nothing_said)
    assert summary["fidelity"]["links"][0]["delay_p50_ms"] == summary["fidelity"]["links"][0]["delay_ms"]
    assert NO_HOST_CAPTURES in summary["fidelity"]["notes"]
    assert NO_LINK_CAPTURES not in summary["fidelity"]["notes"]
    assert summary["recovery"]["cut"]["switch_s"] == (1 * S + 2 * LAN) / 1e9  # no logs: gaps alone tell
    assert summary["latency"]["p50_ms"] is not None


def test_compressed_or_converted_captures_give_the_same_summary(copy, whole):
    shutil.rmtree(copy.analysis)
    for number, path in enumerate(sorted(copy.captures.glob("*.pcap"))):
        kind = ("pcap", "pcapng", "pcap.zst", "pcapng.zst", "pcap.gz")[number % 5]
        converted = path.with_suffix("." + kind.partition(".")[0])
        if converted != path:
            subprocess.run(["editcap", "-F", "pcapng", path, converted], check=True)
            path.unlink()
        if kind.endswith(".zst"):
            subprocess.run(["zstd", "--rm", "-q", converted], check=True)
        elif kind.endswith(".gz"):
            subprocess.run(["gzip", converted], check=True)
    for path in copy.captures.glob("*.index"):
        path.unlink()
    assert analyze_here(copy, progress=nothing_said) == whole.read_summary()
    assert pq.read_table(copy.table("packets")).num_rows == pq.read_table(whole.table("packets")).num_rows
    names = [pq.read_table(run.table("captures")).column("capture").to_pylist() for run in (copy, whole)]
    assert names[0] == names[1]


def test_a_crashed_run_is_analysed_up_to_its_end(copy):
    for number, path in enumerate(sorted(copy.captures.glob("*.pcap"))):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * (number % 5) // 5 - number])
    for path in copy.deliveries.iterdir():
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2 - 7])
    for path in copy.captures.glob("*.index"):
        path.unlink()
    copy.host_deliveries("r2-client-1").unlink()
    changes = read_json(copy.run_json)["changes"][:2]
    times = {"started_ns": ZERO - S, "zero_ns": ZERO}
    set_run(copy, outcome=None, times=times, captures=[], processes=[], changes=changes)
    summary = analyze_here(copy, progress=nothing_said)
    assert summary["verdict"] == "crashed"
    assert "the run did not complete" in summary["fidelity"]["reasons"]
    assert 0 < summary["events"]["delivered"] < 8 * 4 * 7000
    assert summary["throughput"]["events_per_s"] is None


def test_a_run_that_ended_before_anything_ran_has_no_numbers(tmp_path):
    directory = RunDirectory(tmp_path / "a-run")
    directory.path.mkdir()
    content = run_json() | {"outcome": "crashed", "phase": "building", "times": {"started_ns": ZERO}}
    directory.run_json.write_text(
        json.dumps(content | {"changes": [], "captures": [], "processes": [], "cpu": []})
    )
    told = []
    summary = analyze(directory, progress=told.append)
    assert told == ["summing up"]
    assert summary["verdict"] == "crashed"
    assert NO_RECORDS in summary["fidelity"]["notes"]
    assert summary["events"]["lost"] is None
    assert set(summary["latency"].values()) == {None}
    assert summary["recovery"]["cut"]["switch_s"] is None
    assert "recovery.cut: it was never applied" in summary["fidelity"]["notes"]
    assert summary["expectations"][0] == {"text": "events.lost == 0", "value": None, "held": False}
    assert pq.read_table(directory.table("latency")).num_rows == 0


def test_a_run_without_a_plan_is_an_error(tmp_path):
    directory = RunDirectory(tmp_path / "a-run")
    directory.path.mkdir()
    directory.run_json.write_text('{"schema": 2, "phase": "planned"}')
    with pytest.raises(InputError, match=r"run\.json: plan: is missing"):
        analyze_here(directory, progress=nothing_said)


def test_a_failed_task_gives_one_line(copy):
    copy.host_deliveries("r0-client-0").write_bytes(b"this is no record of deliveries")
    with pytest.raises(AnalysisError) as raised:
        analyze(copy, progress=nothing_said)
    text = str(raised.value)
    assert "r0-client-0.deliveries: not a record of deliveries" in text
    assert "\n" not in text
