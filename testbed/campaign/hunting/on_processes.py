"""Cases of a hunt on real processes: each is a run on this machine with packets, and takes as long as one.

The messages of a finding's diagram are read from the packets, and so are the beginnings and ends of
connections. If the machine did not keep up during a run, violations that slowness may cause (`LATE`) do not
count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.capture.pcap.reassemble import FIN, RST, SYN
from analysis.pipeline import analyze_here
from analysis.timelines.delivery.delivery_records import read_rows
from experiments.files.scratch import scratch
from experiments.hunting.case import HuntCase
from experiments.model import CaptureSettings, Experiment
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from testbed.backends.backend import LocalBackend
from testbed.backends.in_memory import HostOutput, RunInMemory
from testbed.backends.message_watcher import SeenMessage
from testbed.campaign.hunting.oracle import OracleResult, judge
from testbed.campaign.hunting.trials import case_request
from testbed.campaign.one_run import prepare
from testbed.errors import TestbedError

LATE = frozenset({"stalled", "silent", "unconfirmed"})
"""Kinds of violation that a slow machine may cause."""
UNDER_WAY = "under-way"
"""Prefix of the folders of unfinished runs; a leftover folder has no owner."""
CONNECTIONS = {SYN: "SYN", FIN: "FIN", RST: "RST"}


class ProcessTrials:
    """Runs cases of one experiment. runs: the folder of their directories while they are needed.

    Hosts' packets are captured whatever the experiment says: diagrams are read from them.
    """

    def __init__(self, base: Experiment, runs: Path) -> None:
        captured = "hosts" in base.captures.where
        self._base = base if captured else base.model_copy(update={"captures": CaptureSettings()})
        self._runs = runs

    def tried(
        self, case: HuntCase, kept_us: tuple[int, int] | None = None, *, keep: bool = False
    ) -> dict[str, Any]:
        """Run a case; see `VirtualTimeTrials`. Raises KeyboardInterrupt when the run was told to stop."""
        with self._run(case) as run:
            answer = _told(run, _executed(run), kept_us)
            if keep and answer["violations"]:
                answer["run"] = str(run.path.rename(self._runs / run.name))
        return answer

    @contextmanager
    def _run(self, case: HuntCase) -> Iterator[RunDirectory]:
        """Yield the directory of a case's run, with its plan; it is removed afterwards unless moved."""
        with scratch(f"{UNDER_WAY}-", self._runs) as folder:
            yield prepare(case_request(self._base, case), LocalBackend(), folder)


def _executed(run: RunDirectory) -> dict[str, Any]:
    """Execute a run, analyse it and return its summary."""
    ended = LocalBackend().execute(run, lambda _: None)
    if ended.by_user:
        raise KeyboardInterrupt
    if ended.record.times.zero_ns is None:
        raise TestbedError("the run ended before its processes published anything")
    return analyze_here(run, progress=lambda _: None)


def judge_files(run: RunDirectory, record: RunRecord) -> OracleResult:
    """Apply the oracle to a run that left files."""
    return judge(RunInMemory(record, _outputs(run, record), []))


def _told(run: RunDirectory, summary: dict[str, Any], kept_us: tuple[int, int] | None) -> dict[str, Any]:
    record = run.read_run()
    judged = judge_files(run, record)
    valid = bool(summary["fidelity"]["valid"])
    messages = _messages(run, record) if kept_us else ()
    low_us, high_us = kept_us or (0, 0)
    return {
        "violations": [asdict(each) for each in judged.violations if valid or each.kind not in LATE],
        "valid": valid,
        "figures": judged.figures,
        "messages": [asdict(each) for each in messages if low_us <= each.time_us < high_us],
    }


def _outputs(run: RunDirectory, record: RunRecord) -> dict[str, HostOutput]:
    """Return the records of the processes, without file headers."""
    found = {}
    for process in record.plan.processes:
        host = process.host
        marks, measures = (
            bytearray(file.read_bytes() if file.is_file() else b"")
            for file in (run.host_collection(host), run.host_measures(host))
        )
        records = bytearray(read_rows(run.host_deliveries(host)).tobytes())
        found[host] = HostOutput(records, marks, measures)
    return found


def _zero_ns(record: RunRecord) -> int:
    assert record.times.zero_ns is not None  # else it was not measured
    return record.times.zero_ns


def _messages(run: RunDirectory, record: RunRecord) -> Iterator[SeenMessage]:
    """Yield the messages and connection packets between processes, in order of time."""
    names = {process.host: process.name for process in record.plan.processes}
    found = [*_decoded(run, names), *_of_connections(run, record, names)]
    for t_ns, source, target, kind in sorted(found):
        yield SeenMessage((t_ns - _zero_ns(record)) // 1000, source, target, kind, "")


def _decoded(run: RunDirectory, names: dict[str, str]) -> Iterator[tuple[int, str, str, str]]:
    columns = ["t_ns", "sender", "receiver", "fate", "type", "within", "retransmitted"]
    for each in pq.read_table(run.table("transfers"), columns=columns).to_pylist():
        if each["sender"] in names and each["receiver"] in names:
            kind = ":".join(filter(None, (each["within"], each["type"])))
            kind += " lost" if each["fate"] == "lost" else " again" if each["retransmitted"] else ""
            yield each["t_ns"], names[each["sender"]], names[each["receiver"]], kind


def _of_connections(
    run: RunDirectory, record: RunRecord, names: dict[str, str]
) -> Iterator[tuple[int, str, str, str]]:
    """Yield SYN, FIN and RST packets as they left their senders."""
    of_address = {int(ip_address(host.address)): host.name for host in record.plan.hosts}
    table = pq.read_table(
        run.table("packets"), columns=["capture", "t_ns", "src_lo", "src_hi", "dst_lo", "flags", "proto"]
    )
    is_edge = pc.not_equal(pc.bit_wise_and(table["flags"], SYN | FIN | RST), 0)
    table = table.filter(pc.and_(is_edge, pc.equal(table["src_hi"], 0)))
    for each in table.to_pylist():
        ends = of_address.get(each["src_lo"], ""), of_address.get(each["dst_lo"], "")
        if ends[0] in names and ends[1] in names and each["capture"].startswith(f"{ends[0]}-eth"):
            kind = "+".join(name for flag, name in CONNECTIONS.items() if each["flags"] & flag)
            yield each["t_ns"], names[ends[0]], names[ends[1]], kind
