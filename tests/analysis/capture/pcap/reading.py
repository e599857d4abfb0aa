"""Cutset's reading of a capture: the fields of its packets, and the tables of its messages."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.files.compressed import unpack
from analysis.capture.pcap.files.index import CaptureIndex, load_index
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.pcap.streams import (
    CaptureStreams,
    HostCapture,
    WaitLimits,
    extract_messages,
    format_address,
)
from analysis.capture.tls.events import TlsConnections
from analysis.schemas import DECODING, GAPS, MEMBERSHIPS, MESSAGES
from node.core.message_layout import Codec
from node.protocols.sprinkler.messages import CODEC
from tests.analysis.capture.pcap.captures import Record, segment, write_pcap
from tests.analysis.capture.pcap.complete_capture import Sent

Row = dict[str, int | str]
HEADERS_BYTES = 14 + 20 + 20
SCHEMAS = {"messages": MESSAGES, "gaps": GAPS, "decoding": DECODING, "memberships": MEMBERSHIPS}


def packets(path: Path, index: CaptureIndex | None = None) -> list[Columns]:
    """Return the columns of a capture's packets."""
    return [columns for span in spans_of(path, index or load_index(path)) for columns in read_columns(span)]


class Tables:
    """The tables of a capture's messages, as they are emitted."""

    def __init__(self) -> None:
        self._batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in SCHEMAS}

    def emit(self, table: str, batch: pa.RecordBatch) -> None:
        batch.validate(full=True)
        self._batches[table].append(batch)

    def tables(self) -> dict[str, pa.Table]:
        return {name: pa.Table.from_batches(rows, SCHEMAS[name]) for name, rows in self._batches.items()}

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        return {name: table.to_pylist() for name, table in self.tables().items()}


def extract(
    capture: HostCapture, codec: Codec | MarkerSearch, tls: TlsConnections | None = None
) -> dict[str, pa.Table]:
    """Return the tables of a whole capture."""
    found = Tables()
    extract_messages(capture, codec, found.emit, tls)
    return found.tables()


def search(
    folder: Path, records: Iterable[Record], markers: MarkerSearch, tls: TlsConnections | None = None
) -> dict[str, pa.Table]:
    """Return the tables of a broker's capture, 10.0.0.2's, that is searched for events."""
    path = write_pcap(folder / "r0-broker-0-eth0.pcap", records)
    return extract(HostCapture(str(path), "r0-broker-0", "10.0.0.2", None), markers, tls)


def seqs(tables: dict[str, pa.Table]) -> list[int]:
    """Return the sequence numbers of the events found."""
    found: list[int] = tables["messages"].column("first_seq").to_pylist()
    return found


def windowed(
    path: Path, sent: Sequence[Sent], cuts: Sequence[int], patience: WaitLimits
) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a capture of these segments, read in windows that end at the given segments."""
    records = [
        Record(one.t_ns, segment(one.seq, one.payload, flags=one.flags)[: HEADERS_BYTES + one.captured],
               HEADERS_BYTES + len(one.payload))
        for one in sent
    ]  # fmt: skip
    columns = packets(write_pcap(path, records))
    together = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
    found = Tables()
    host = HostCapture(str(path), "r0-proxy-0", "10.0.0.2", 7000)
    conversations = CaptureStreams(map_bytes(path), host, CODEC, found.emit, patience)
    for first, following in pairwise([0, *cuts, len(sent)]):
        conversations.take([{name: values[first:following] for name, values in together.items()}])
    conversations.end()
    return found.rows()


def ours(path: Path) -> tuple[CaptureIndex, list[Row]]:
    """Return the index of a capture of any kind, and its packets' fields from Cutset's reader."""
    path = unpack(path)
    index = load_index(path)
    rows = []
    for columns in packets(path):
        names = ("t_ns", "length", "wire_length", "sport", "dport", "seq")
        for row in range(columns["t_ns"].size):
            one: Row = {name: int(columns[name][row]) for name in names}
            for side in ("src", "dst"):
                halves = [int(columns[f"{side}_{half}"][row]) for half in ("hi", "lo")]
                one[side] = format_address(*halves) if any(halves) else ""
            one["payload"] = int(columns["payload_length"][row]) if columns["proto"][row] == 6 else 0
            rows.append(one)
    return index, rows
