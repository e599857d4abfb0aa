"""Reading of nodes' logs; an invalid log gives one clear error."""

import re

import pytest

from analysis.errors import AnalysisError
from analysis.timelines.log_records import log_records
from analysis.timelines.recovering.failover_events import chains, from_logs
from experiments.records.rundir import RunDirectory
from tests.analysis.timelines.world import facts_of

GOOD = '{"t_ns": 9, "event": "peer_lost", "peer": "r2/proxy-0"}\n'


def test_requested_records_are_in_order_without_a_truncated_line(tmp_path):
    log = tmp_path / "log"
    log.write_text(GOOD + '{"t_ns": 10, "event": "ready"}\n' + GOOD.replace("9", "8") + GOOD[:-9])
    assert [record["t_ns"] for record in log_records(log, ("peer_lost",))] == [9, 8]
    assert list(log_records(tmp_path / "none", ("peer_lost",))) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('["peer_lost"]', "not a log record, but a list"),
        ('"peer_lost"', "not a log record, but a str"),
        ('{"event": "peer_lost"}', "a log record of peer_lost without a time"),
        ('{"event": "peer_lost", "t_ns": "soon"}', "a log record of peer_lost without a time"),
    ],
)
def test_a_json_line_other_than_a_record_is_an_error_with_its_place(tmp_path, line, why):
    log = tmp_path / "log"
    log.write_text(GOOD + line + "\n")
    with pytest.raises(AnalysisError, match=re.escape(f"{log}:2: {why}")):
        list(log_records(log, ("peer_lost",)))


def test_invalid_chains_are_ignored(tmp_path):
    run = RunDirectory(tmp_path)
    run.logs.mkdir()
    metadata = facts_of()
    host = next(host.name for host in metadata.hosts.values() if host.role == "proxy")
    run.log(host).write_text('{"t_ns": 9, "event": "configuration_changed", "number": 1, "chain": 7}\n')
    assert chains(from_logs(run, metadata), metadata).to_pylist()[0]["chain"] == []
