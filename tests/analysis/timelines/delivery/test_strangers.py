"""Unrecognised payloads at clients of programs are reported."""

import json
from dataclasses import replace

from analysis.timelines.delivery.strangers import STRANGER, notes
from experiments.records.rundir import RunDirectory
from node.core.declaration import Marked
from tests.analysis.timelines.world import facts_of


def logged(run: RunDirectory, host: str, event: str, size: object) -> None:
    run.logs.mkdir(exist_ok=True)
    with run.log(host).open("a") as log:
        log.write(json.dumps({"t_ns": 9, "event": event, "topic": "r0/0", "bytes": size}) + "\n")


def test_receivers_of_unknown_payloads_are_reported_for_programs(tmp_path):
    run, metadata = RunDirectory(tmp_path), facts_of()
    programs = replace(metadata, declared=replace(metadata.declared, marked=Marked()))
    one, other = programs.clients[:2]
    logged(run, one, "output", 500)
    assert notes(run, programs) == []
    logged(run, one, STRANGER, 64)
    logged(run, one, STRANGER, 65)
    assert notes(run, programs) == [
        f"{one} got payloads that are not events of the run, the first of 64 B: not_an_event in the log"
    ]
    logged(run, other, STRANGER, 7)
    assert notes(run, programs)[0].startswith(f"{one} and 1 more got payloads")
    assert notes(run, metadata) == [], "our own nodes say themselves what is wrong"


def test_a_foreign_log_gives_no_size(tmp_path):
    run, metadata = RunDirectory(tmp_path), facts_of()
    programs = replace(metadata, declared=replace(metadata.declared, marked=Marked()))
    logged(run, programs.clients[0], STRANGER, ["many"])
    assert " of the run: " in notes(run, programs)[0]
