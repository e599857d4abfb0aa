"""Rows of a user's file as events: CSV and Parquet, with each wrong cell named, within limits."""

import datetime
import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.loader import load_experiment, read_experiment
from experiments.workloads import content, event_rows
from experiments.workloads.event_rows import columns_of, read_rows
from node import systems
from node.core.content.content import ContentAttribute
from node.core.content.event_values import EventValues
from node.core.ordinals import of_date, of_word
from testbed.planning import make_plan
from tests.refusals import refusal
from topologies.errors import InputError
from topologies.loader import load_topology

EXCHANGE = Path(__file__).parents[2] / "broker" / "exchange.py"
DAY = ContentAttribute("day", "date", of_date("1998-01-02"), of_date("2002-12-31"))
SYMBOL = ContentAttribute("symbol", "string", 0.0, of_word("zzzzz", 5), length=5)
OPEN = ContentAttribute("open", "real", 0.0, 500.0)
VOLUME = ContentAttribute("volume", "integer", 0.0, 1e9)
ATTRIBUTES = (DAY, SYMBOL, OPEN, VOLUME)
TEXT = """Date,symbol,open,more,volume
1998-01-02,AAPL,13.63,x,6411700
1998-01-05, msft ,,"a, b",
1998-01-06,ibm,1e2,,12
"""
EXPECTED = [
    [of_date("1998-01-02"), of_word("aapl", 5), 13.63, 6411700],
    [of_date("1998-01-05"), of_word("msft", 5), np.nan, np.nan],
    [of_date("1998-01-06"), of_word("ibm", 5), 100, 12],
]


def read(path, attributes=ATTRIBUTES, **named):
    return read_rows(path, columns_of(attributes, {"day": "Date"} | named))


def csv(folder, text, name="rows.csv"):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_cells_of_a_csv_file_become_values_and_empty_ones_unspecified(tmp_path, name):
    np.testing.assert_array_equal(read(csv(tmp_path, TEXT, name)), EXPECTED)


@pytest.mark.parametrize("days", [pa.date32(), pa.timestamp("us"), pa.string()])
def test_a_parquet_file_is_read_with_its_column_types(tmp_path, days):
    dates = pa.array([datetime.date(1998, 1, day) for day in (2, 5, 6)]).cast(days)
    symbols = pa.array(["AAPL", "msft", "ibm"]).dictionary_encode()
    columns = {"Date": dates, "symbol": symbols, "open": [13.63, None, 100], "volume": [6411700, None, 12]}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    np.testing.assert_array_equal(read(path), EXPECTED)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1e2", "cheap", "row 3, column open: 'cheap' is not a number"),
        ("1e2", "501", "row 3, column open: '501' is not from 0 to 500"),
        ("6411700", "6.5", "row 1, column volume: '6.5' is not an integer"),
        ("1998-01-05", "5/Jan/98", "row 2, column Date: '5/Jan/98' is not a date such as 2002-12-31"),
        ("symbol", "Symbol", "has no column symbol: did you mean Symbol?"),
        ("more", "open", "has several columns open"),
        (TEXT, TEXT.replace(",", ";"), "separates columns by ';': use ','"),
        (",12\n", "\n", "cannot be read: CSV parse error"),
        (TEXT.partition("\n")[2], "", "has no rows"),
    ],
)
def test_errors_are_one_line_with_row_and_column(tmp_path, old, new, said):
    path = csv(tmp_path, TEXT.replace(old, new))
    assert refusal(read, path).startswith(f"{path}: {said}")


def test_rows_of_later_blocks_are_numbered_from_the_first_one(tmp_path, monkeypatch):
    monkeypatch.setattr(event_rows, "BLOCK_BYTES", 1000)
    text = "open\n" + "".join(f"{n / 100}\n" for n in range(5000))
    path = csv(tmp_path, text + "x\n")
    with pytest.raises(InputError, match="row 5001, column open: 'x' is not a number"):
        read(path, (OPEN,))
    monkeypatch.setattr(event_rows, "ROWS_MAX", 4000)
    with pytest.raises(InputError, match="has more than 4,000 rows"):
        read(path, (OPEN,))


def test_missing_large_or_unknown_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(tmp_path / "gone.csv")
    with pytest.raises(InputError, match=r"should end in \.csv, \.csv\.gz, \.parquet"):
        read(csv(tmp_path, TEXT, "rows.txt"))
    monkeypatch.setattr(event_rows, "FILE_BYTES_MAX", 10)
    with pytest.raises(InputError, match="is larger than"):
        read(csv(tmp_path, TEXT))


def test_missing_or_truncated_files_are_reported_in_one_line(tmp_path):
    for name, data in (
        ("folder.csv", None), ("folder.parquet", None), ("torn.csv.gz", gzip.compress(TEXT.encode())[:40]),
        ("plain.csv.gz", b"open\n1\n"), ("bytes.csv", b"open\n\xff\xfe\n"), ("empty.csv", b""),
    ):  # fmt: skip
        path = tmp_path / name
        path.mkdir() if data is None else path.write_bytes(data)
        with pytest.raises(InputError, match="cannot be read: ") as raised:
            read(path, (OPEN,))
        assert "\n" not in str(raised.value)


NOT_UTF_8 = (
    "open\n1\n".encode("utf-16"), b"\xff\xfeopen\n1\n", b"open,\xe9t\xe9\n1,2\n",
    "open,symbol\n1,caf\xe9\n".encode("latin-1"),
)  # fmt: skip


@pytest.mark.parametrize("data", NOT_UTF_8)
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_csv_file_in_another_encoding_is_refused_with_the_remedy(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert (
        refusal(read, path, (OPEN, SYMBOL) if b"symbol" in data else (OPEN,))
        == f"{path}: cannot be read: is not UTF-8 text: save it as UTF-8"
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_a_parquet_file_s_text_in_another_encoding_is_refused_too(tmp_path, kind):
    path, latin_1 = tmp_path / "rows.parquet", pa.array([b"ibm", b"caf\xe9"])
    if kind == pa.binary():
        cells = latin_1
    else:
        cells = pa.Array.from_buffers(pa.string(), len(latin_1), latin_1.buffers())
        cells = cells if kind == pa.string() else pa.DictionaryArray.from_arrays([0, 1], cells)
    pq.write_table(pa.table({"symbol": cells}), path)
    assert refusal(read, path, (SYMBOL,)) == f"{path}: cannot be read: is not UTF-8 text: save it as UTF-8"


def test_a_file_that_has_changed_is_read_again(tmp_path):
    path = csv(tmp_path, "open\n1\n2\n")
    assert read(path, (OPEN,)).tolist() == [[1], [2]]
    csv(tmp_path, "open\n3\n4\n")
    os.utime(path, ns=(1, 1))
    assert read(path, (OPEN,)).tolist() == [[3], [4]]


EXPERIMENT = """name: rows
topology: four-regions
system: exchange
roles: {r0: {exchange: 1, publisher: 1, subscriber: 2}, default: {publisher: 1, subscriber: 2}}
workload:
  kind: content
  event_size: 40B
  rate: 10/s
  attributes:
    - {name: day, type: date, min: 1998-01-02, max: 2002-12-31}
    - {name: symbol, type: string, max: zzzzz, wanted: {distribution: events}}
    - {name: open, max: 500}
    - {name: volume, type: integer, max: 1000000000}
  events: {file: rows.csv, columns: {day: Date}}
  subscriptions: {each: 10, templates: [{ranges: {symbol: equal}}]}
duration: 10s
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(EXCHANGE))
    systems.systems.cache_clear()
    yield _experiment(tmp_path)
    systems.systems.cache_clear()


def _experiment(tmp_path):
    rows = "".join(f"1998-01-02,{'abcdefgh'[n % 8]},{n / 10},,{n}\n" for n in range(1000))
    csv(tmp_path, TEXT.partition("\n")[0] + "\n" + rows)
    path = tmp_path / "rows.yaml"
    path.write_text(EXPERIMENT)
    return path


def planned(path):
    experiment = load_experiment(str(path))
    return make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="auto")


def test_rows_are_divided_between_publishers(experiment):
    plan = planned(experiment)
    told = {process.region: process for process in plan.processes if process.rows}
    assert {process.role for process in told.values()} == {"publisher"}
    volumes = []
    for number, region in enumerate(told):
        values = EventValues(plan.workload, 1, number, 4, told[region].rows)
        volumes += values.many(0, 101)[:, 3].tolist()
    assert sorted(volumes) == list(range(404))
    wanted = {asked.ranges[1] for process in plan.processes for asked in process.subscriptions}
    assert wanted == {(of_word(letter, 5),) * 2 for letter in "abcdefgh"}


def test_a_row_file_is_relative_to_its_experiment_and_errors_name_the_field(experiment):
    file = read_experiment(str(experiment))
    assert file.experiment.workload.events.file == str(experiment.with_name("rows.csv"))
    csv(experiment.parent, TEXT.replace("1e2", "high"))
    assert refusal(load_experiment, str(experiment)) == (
        f"{experiment}:14: workload.events.file:"
        f" {experiment.with_name('rows.csv')}: row 3, column open: 'high' is not a number"
    )


def test_too_few_rows_and_too_large_shares_are_refused(experiment, monkeypatch):
    csv(experiment.parent, TEXT)
    with pytest.raises(InputError, match=r"has 3 rows, fewer than there are streams, 4"):
        load_experiment(str(experiment))
    csv(experiment.parent, TEXT + "".join(f"1998-01-02,a,{n},,{n}\n" for n in range(400)))
    monkeypatch.setattr(content, "ROWS_TEXT_MAX", 100)
    with pytest.raises(InputError, match="lower the rate or the duration"):
        load_experiment(str(experiment))


def test_invalid_numbers_in_parquet_files_are_named(tmp_path):
    path = tmp_path / "rows.parquet"
    for values, said in (([1.0, -2.0], "row 2, column open: '-2.0' is not from 0"), (["a"], "row 1, column")):
        pq.write_table(pa.table({"open": values}), path)
        with pytest.raises(InputError, match=said):
            read(path, (OPEN,))
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match="cannot be read: "):
        read(path, (OPEN,))
