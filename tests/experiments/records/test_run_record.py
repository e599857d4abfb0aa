"""run.json is read completely or refused in one line, for any value in any field."""

import json
import tracemalloc
from dataclasses import asdict, replace
from typing import Any

import pytest

from analysis.pages.report.charts.bands import bands
from analysis.pages.report.run_reader import AnalysedRun
from analysis.timelines.links.traversals import traversals
from analysis.timelines.machine_health import machine_problems
from analysis.timelines.run_metadata import read_metadata
from experiments.planned.plan import RoutingPlan
from experiments.records.run_record import (
    RunRecord,
    read_record,
    record_from_json,
    record_from_text,
    record_text,
    record_to_json,
    write_record,
)
from tests.analysis.timelines.world import COUNTERS, ZERO, run_json
from tests.changed_json import WRONG, broken
from topologies.errors import InputError


def whole() -> dict[str, Any]:
    probe = {"when": "before", "from": "r0", "to": "r1", "rtt_us": [34_000.0]}
    content = run_json(
        "captures=none",
        "workload.collect.last=5",
        counters=[COUNTERS],
        probes=[probe],
        routes=[{"t_ns": ZERO, "region": "r0", "target": "r1", "link": "r0-r1"}],
        versions={"python": "3.11"},
    )
    content["plan"]["routing"] = asdict(RoutingPlan("ospf", 10, 40))
    return content


def looked_at(record: RunRecord) -> None:
    """Return everything that readers derive from a record before they open another file."""
    metadata = read_metadata(record)
    metadata.delay_us(("r0", "r1"), ZERO + 1)
    machine_problems(record, metadata)
    traversals(record.plan)
    bands(AnalysedRun(record, {}, (), (), (), (), ()))
    assert record.request.expect is not None
    assert record_from_json(record_to_json(record)) == record


@pytest.mark.slow
def test_a_changed_field_is_read_or_refused_in_one_line() -> None:
    def read(content: dict[str, Any]) -> None:
        try:
            looked_at(record_from_text(json.dumps(content).encode()))
        except InputError as error:
            if str(error).startswith("run.json: "):
                raise
            raise AssertionError(str(error)) from error

    assert broken(whole(), WRONG, read, every=34) == []


@pytest.mark.parametrize(
    "wrong", [7, [7], [{"name": "price", "kind": "real", "low": "0", "high": 1.0}], {"a": {}}]
)
def test_invalid_attributes_are_refused(wrong: Any) -> None:
    content = whole()
    content["plan"]["workload"]["attributes"] = wrong
    with pytest.raises(InputError, match="attributes: are not attributes"):
        record_from_json(content)


def test_a_record_of_an_earlier_schema_is_refused_by_its_field() -> None:
    with pytest.raises(InputError, match=r"run\.json: schema: .*another version"):
        record_from_json(whole() | {"schema": 1, "links_without_middle": []})


def test_a_record_that_was_read_is_written_unchanged() -> None:
    record = record_from_json(whole())
    assert '"index": 0' in record_text(record)
    assert record_to_json(record)["plan"] == whole()["plan"]


def test_memory_of_reading_grows_with_hosts_and_not_with_hosts_times_links(tmp_path) -> None:
    record = record_from_json(whole())
    host, lan = record.plan.hosts[1], next(link for link in record.plan.links if link.kind == "lan")
    hosts = tuple(replace(host, name=f"more-{n}", lan_link=f"lan-{n}") for n in range(2_000))
    links = tuple(replace(lan, name=each.lan_link, a=each.name) for each in hosts)
    plan = replace(record.plan, hosts=record.plan.hosts + hosts, links=record.plan.links + links)
    write_record(tmp_path / "run.json", replace(record, plan=plan))
    tracemalloc.start()
    read_record(tmp_path / "run.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * len((tmp_path / "run.json").read_bytes())


def test_a_record_is_parsed_again_once_it_changed(tmp_path) -> None:
    record = record_from_json(whole())
    write_record(tmp_path / "run.json", record)
    first = read_record(tmp_path / "run.json")
    assert read_record(tmp_path / "run.json") is first
    write_record(tmp_path / "run.json", replace(record, seed=record.seed + 1))
    assert read_record(tmp_path / "run.json").seed == record.seed + 1
