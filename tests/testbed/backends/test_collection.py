"""For every collection rule, a correct run passes the check and a violation is detected."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analysis.timelines.delivery.collecting import read_marks
from analysis.timelines.delivery.deliveries import delivery_table
from analysis.timelines.delivery.delivery_records import read_files
from analysis.timelines.run_metadata import read_metadata
from node.core.deliveries import RecordKind
from tests.virtual_runs import experiment_in, simulated

EXPERIMENT = """
parameters: {{flush_interval: 20ms{more}}}
workload: {{event_size: 10B, rate: {rate}, collect: {{{collect}}}{keys}}}
duration: 4s
faults:
  - {{name: kill, at: 2s, kill: r1/client-0}}
  - {{name: again, at: 3300ms, restart: r1/client-0}}
"""
KEYS = ", keys: {count: 300}"
RULES = ["last: 500, one_of: 250", "older_than: 500ms"]


def simulated_run(folder, collect, keys="", more="", rate="1000/s"):
    """Return the run's metadata, and the records of drivers and clients."""
    text = EXPERIMENT.format(collect=collect, keys=keys, more=more, rate=rate)
    run = simulated(experiment_in(folder, text), folder)
    metadata = read_metadata(run.read_run())
    published, got = (
        read_files([(host, run.host_deliveries(host)) for host in metadata.having(trait)])
        for trait in ("publisher", "subscriber")
    )
    marks = read_marks([run.host_collection(host) for host in metadata.having("publisher")])
    return metadata, published, got, marks if metadata.marked else None


def checked(metadata, published, got, marks):
    """Return the errors at all clients and streams, and the number of tombstones."""
    rows = delivery_table(metadata.clients, published, got, metadata, marks)
    names = ("lost", "duplicated", "out_of_order", "resurrected", "corrupted")
    return {name: total(rows, name) for name in names if total(rows, name)}, total(rows, "tombstoned")


def total(rows, name):
    return pc.sum(rows.column(name)).as_py()


def test_a_small_history_still_accepts_events_of_others(tmp_path):
    """Fill the history of a region always; events that collect, also of the other region's stream, still
    enter.
    """
    facts = simulated_run(
        tmp_path, "last: 100", more=", history_limit: 10kB, batch_limit: 4kB", rate="2000/s"
    )
    assert checked(*facts)[0] == {}
    assert pc.sum(facts[1].column("count")).as_py() > 15_000


@pytest.mark.parametrize("collect", RULES)
def test_collection_by_number_and_age_is_correct(collect, tmp_path):
    wrong, tombstoned = checked(*simulated_run(tmp_path, collect))
    assert wrong == {}
    assert tombstoned > 0, "the client that came back got what is left"


@pytest.mark.slow
def test_collection_by_key_is_correct(tmp_path):
    metadata, published, got, marks = simulated_run(tmp_path, "same_key: 8, one_of: 3", KEYS)
    wrong, tombstoned = checked(metadata, published, got, marks)
    assert wrong == {}
    assert tombstoned > 0
    kept = sum(len(kept_by_key(marks.marks_of_stream(stream))) for stream in metadata.owner)
    undisturbed = got.filter(pc.equal(got.column("host"), "r0-client-0"))
    only = replace(
        metadata, hosts={name: host for name, host in metadata.hosts.items() if name != "r1-client-0"}
    )
    wrong, _ = checked(only, published, all_collected(undisturbed), marks)
    assert wrong == {"lost": kept}, "everything as tombstones"


def kept_by_key(marks):
    """Return the uncollected events of one stream, computed one by one."""
    kept = {}
    for at in np.argsort(marks.seq).tolist():
        key = int(marks.keys[at])
        kept[key] = [*([] if marks.collects[at] else kept.get(key, [])), at]
    return [at for events in kept.values() for at in events]


def all_collected(records):
    """Return the clients' records as if all events had been collected."""
    events = pc.is_in(records.column("kind"), pa.array([RecordKind.DELIVERED, RecordKind.SPARSE], pa.int32()))
    kinds = pc.if_else(events, pa.scalar(int(RecordKind.TOMBSTONE), pa.int32()), records.column("kind"))
    count = pc.cast(records.column("covered"), pa.int32())
    for name, values in (("kind", kinds), ("count", count)):
        records = records.set_column(records.column_names.index(name), name, values)
    return records
