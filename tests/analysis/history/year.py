"""A simulated year of nights of a suite, with the noise of real runs.

Noise is multiplicative and heavy-tailed (Student's t), wider on some nights than on others, and partly the
night's own: all runs of a night share a machine. Now and then a run is far off, invalid, or crashed. On
Sundays there are more repeats. Regressions are planted by name. Everything comes from one seed, and is made
with NumPy, a table at a time, so that a year takes seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.history import History
from analysis.history.files import night_file
from analysis.history.history_schemas import EXPECTATIONS, METRICS, RUNS, SCHEMA, SCHEMAS
from analysis.history.metrics import unit_of
from experiments.records.summary import METRICS as SUMMARY_METRICS
from experiments.records.summary import RECOVERY

SUITE = "simulated"
FIRST = date(2026, 1, 1)
SUNDAY = 6
KINDS = ("link-failure", "throughput", "proxy-crash", "latency-load", "fanout-shuffle")
"""An experiment's kind: those with a fault have its recovery too."""
FAULTS = {"link-failure": ("cut", "restore"), "proxy-crash": ("crash",)}
DEGREES = 4  # of freedom of Student's t: its tails are heavy, its variance is 2
FAR_OFF = 0.01  # of the runs
SETTLED_STEP_S = 0.1  # settled_s is counted in bins

TEXTS = pa.list_(pa.string())


@dataclass(frozen=True, slots=True)
class Planted:
    """From a night on (its number, from 0) a metric changes by this fraction; one that is 0, to this value.

    until: the first night on which it is as before.
    """

    entry: str
    metric: str
    night: int
    change: float
    until: int | None = None


@dataclass(frozen=True, slots=True)
class _Shape:
    """A metric's size and noise: spread is the standard deviation of a run, as a fraction."""

    base: float
    spread: float


_SHAPES = {
    "throughput.events_per_s": _Shape(80_000.0, 0.006),
    "throughput.slowest_client_events_per_s": _Shape(79_000.0, 0.008),
    "throughput.bytes_per_s": _Shape(800_000.0, 0.006),
    "latency.mean_ms": _Shape(52.0, 0.012),
    "latency.p50_ms": _Shape(49.0, 0.01),
    "latency.p95_ms": _Shape(82.0, 0.02),
    "latency.p99_ms": _Shape(88.0, 0.035),
    "latency.max_ms": _Shape(700.0, 0.15),
    "events.published": _Shape(4_800_000.0, 0.0001),
    "events.delivered": _Shape(38_400_000.0, 0.0001),
    "events.lost": _Shape(0.0, 0.0),
    "events.duplicated": _Shape(0.0, 0.0),
    "events.out_of_order": _Shape(0.0, 0.0),
    "events.corrupted": _Shape(0.0, 0.0),
    "fidelity.cpu_max": _Shape(0.8, 0.05),
}
_RECOVERY = {
    "detect_s": _Shape(0.6, 0.04),
    "resubscribe_s": _Shape(0.62, 0.04),
    "switch_s": _Shape(0.69, 0.04),
    "catch_up_s": _Shape(0.82, 0.05),
    "settled_s": _Shape(1.2, 0.06),
    "backlog_events": _Shape(14_000.0, 0.05),
    "lost": _Shape(0.0, 0.0),
    "duplicated": _Shape(0.0, 0.0),
    "out_of_order": _Shape(0.0, 0.0),
    "affected_pairs": _Shape(4.0, 0.0),
}


def entries(experiments: int = 20) -> list[str]:
    """Return the names of the year's experiments."""
    return [f"{KINDS[number % len(KINDS)]}-{number:02}" for number in range(experiments)]


def metrics_of(entry: str) -> list[str]:
    """Return the names of an experiment's metrics."""
    return list(_shapes(entry))


def night_of(number: int, first: date = FIRST) -> str:
    """Return the date of a night by its number, from 0, in the history's format."""
    return (first + timedelta(days=number)).isoformat()


def make_year(
    folder: Path,
    nights: int = 365,
    experiments: int = 20,
    *,
    seed: int = 1,
    planted: Sequence[Planted] = (),
    flaky: Mapping[str, float] | None = None,
    repeats: int = 3,
    sunday_repeats: int = 5,
    noise: float = 1.0,
    invalid: float = 0.02,
    crashed: float = 0.01,
    first: date = FIRST,
    suite: str = SUITE,
) -> History:
    """Write the year into a history and return that.

    flaky: by entry, how often its expectation `agreement.compared > 0` fails for no reason. noise: times the
    usual noise. invalid, crashed: fractions of the runs.
    """
    year = _Calendar.make(nights, repeats, sunday_repeats, seed, first)
    made = [
        _experiment(
            year, number, entry, seed, planted, (flaky or {}).get(entry, 0.0), noise, (invalid, crashed)
        )
        for number, entry in enumerate(entries(experiments))
    ]
    history = History(folder)
    for table in (METRICS, EXPECTATIONS, RUNS):
        rows = pa.concat_tables([tables[table] for tables in made])
        _write(folder, table, rows, year, suite)
    return history


@dataclass(frozen=True, slots=True)
class _Calendar:
    """The nights and the runs of one experiment in them. night: of each run, its night's number."""

    nights: int
    first: date
    night: np.ndarray
    repeat: np.ndarray
    commits: list[str]
    width: np.ndarray  # how wide a night's noise is
    push: np.ndarray  # how far the night's machine moves everything, in spreads

    @classmethod
    def make(cls, nights: int, repeats: int, sunday_repeats: int, seed: int, first: date) -> "_Calendar":
        random = np.random.default_rng([seed, 2**20])
        days = [first + timedelta(days=number) for number in range(nights)]
        counts = np.array([sunday_repeats if day.weekday() == SUNDAY else repeats for day in days])
        changed = random.random(nights) < 0.6
        versions = np.maximum.accumulate(np.where(changed, np.arange(nights), 0))
        hexes = [random.bytes(20).hex() for _ in range(nights)]
        return cls(
            nights,
            first,
            np.repeat(np.arange(nights), counts),
            np.concatenate([np.arange(count) for count in counts]),
            [hexes[version] for version in versions],
            np.exp(random.normal(0.0, 0.25, nights)),
            random.standard_t(DEGREES, nights) * 0.25,
        )


def _shapes(entry: str) -> dict[str, _Shape]:
    kind = entry.rsplit("-", 1)[0]
    shapes = dict(_SHAPES)
    for fault in FAULTS.get(kind, ()):
        shapes |= {f"recovery.{fault}.{name}": shape for name, shape in _RECOVERY.items()}
    return shapes


def _experiment(
    year: _Calendar,
    number: int,
    entry: str,
    seed: int,
    planted: Sequence[Planted],
    flaky: float,
    noise: float,
    bad: tuple[float, float],
) -> dict[str, pa.Table]:
    """Return its rows in each table, without suite, with the night's number in the column `night`."""
    random = np.random.default_rng([seed, number])
    count = len(year.night)
    begin = datetime(1, 1, 1, 2, tzinfo=UTC) + timedelta(minutes=number)
    names = [
        f"{begin + timedelta(seconds=3 * int(repeat)):%H%M%S}Z-{entry}-{tail:06x}"
        for repeat, tail in zip(year.repeat, random.integers(0, 16**6, count), strict=True)
    ]
    days = [night_of(night, year.first).replace("-", "") for night in range(year.nights)]
    runs = pa.array([f"{days[night]}T{name}" for night, name in zip(year.night, names, strict=True)])
    chance = random.random(count)
    crashed, invalid = chance < bad[1], (chance >= bad[1]) & (chance < bad[0] + bad[1])
    values = _values(year, entry, random, planted, noise, invalid)
    held = _held(entry, values, random.random(count) >= flaky)
    failed = ~np.logical_and.reduce([ok for _, ok in held.values()])
    verdict = np.select([crashed, invalid, failed], ["crashed", "invalid", "failed"], "passed")
    common = {"night": pa.array(year.night), "run": runs, "entry": pa.repeat(pa.scalar(entry), count)}
    kept = np.flatnonzero(~crashed)
    return {
        RUNS: _runs(year, common, verdict, random),
        METRICS: _long(
            common,
            kept,
            {
                "metric": list(values),
                "unit": [unit_of(name) for name in values],
                "better": [_better(name) for name in values],
            },
            {"value": np.column_stack(list(values.values()))},
        ),
        EXPECTATIONS: _long(
            common,
            kept,
            {"text": list(held)},
            {
                "value": np.column_stack([value for value, _ in held.values()]),
                "held": np.column_stack([ok for _, ok in held.values()]),
            },
        ),
    }


def _better(name: str) -> str:
    section, _, last = name.partition(".")
    figures = RECOVERY if section == "recovery" else SUMMARY_METRICS[section]
    return figures[last.rsplit(".", 1)[-1]].better


def _values(
    year: _Calendar,
    entry: str,
    random: np.random.Generator,
    planted: Sequence[Planted],
    noise: float,
    invalid: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return each run's measurements by metric."""
    count = len(year.night)
    size = float(np.exp(random.normal(0.0, 0.4)))  # experiments differ, and so does how noisy they are
    shared = random.standard_t(DEGREES, count)  # noise common to all times of a run
    far_off = np.where(random.random(count) < FAR_OFF, random.uniform(0.3, 1.0, count), 0.0)
    found = {}
    for name, shape in _shapes(entry).items():
        spread = shape.spread * noise * float(np.exp(random.normal(0.0, 0.3)))
        own = random.standard_t(DEGREES, count)
        mixed = (0.6 * shared + 0.8 * own) / np.sqrt(2.0) * year.width[year.night] + year.push[year.night]
        slower = name.startswith(("latency", "recovery"))
        worse = far_off * (spread > 0) + np.where(invalid, 0.5, 0.0) * (spread > 0)
        factor = np.exp(np.clip(spread * mixed, -1.0, 1.0) + (worse if slower else -0.3 * worse))
        constant = name.startswith("events") or name.endswith("affected_pairs")
        base = shape.base if constant else shape.base * size
        values = base * factor * _change(year, entry, name, planted)
        if shape.base == 0.0:
            values = _change(year, entry, name, planted) - 1.0
        found[name] = _rounded(name, values)
    return found


def _change(year: _Calendar, entry: str, name: str, planted: Sequence[Planted]) -> np.ndarray:
    """Return the planted change as a factor for each run."""
    factor = np.ones(len(year.night))
    for each in planted:
        if (each.entry, each.metric) == (entry, name):
            until = year.nights if each.until is None else each.until
            factor[(year.night >= each.night) & (year.night < until)] += each.change
    return factor


def _rounded(name: str, values: np.ndarray) -> np.ndarray:
    if name.endswith("settled_s"):
        return np.round(values / SETTLED_STEP_S) * SETTLED_STEP_S
    if unit_of(name) in {"events", "pairs"}:
        return np.round(values)
    return np.minimum(values, 1.0) if name.endswith("cpu_max") else values


def _held(
    entry: str, values: Mapping[str, np.ndarray], lucky: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the value of each expectation, and whether it held."""
    found = {
        "events.lost == 0": (values["events.lost"], values["events.lost"] == 0),
        "agreement.compared > 0": (lucky.astype(float), lucky),
    }
    for fault in FAULTS.get(entry.rsplit("-", 1)[0], ()):
        switched = values[f"recovery.{fault}.switch_s"]
        limit = round(float(np.median(switched)) * 4, 1)
        found[f"recovery.{fault}.switch_s <= {limit}"] = (switched, switched <= limit)
    return found


def _runs(
    year: _Calendar, common: Mapping[str, pa.Array], verdict: np.ndarray, random: np.random.Generator
) -> pa.Table:
    count = len(verdict)
    start = datetime(year.first.year, year.first.month, year.first.day, 2, tzinfo=UTC).timestamp()
    crashed, invalid = verdict == "crashed", verdict == "invalid"
    text = {
        "experiment": str(common["entry"][0]).rsplit("-", 1)[0], "settings": "{}", "cutset": "0.1.0",
        "python": "3.11.7", "kernel": "6.18.44", "links": "relay", "place": "local", "large_seed": "",
        "machine": '{"cpus": 2, "hostname": "night", "memory_bytes": 25276502016}',
    }  # fmt: skip
    return pa.table(
        {
            **common,
            **{name: pa.repeat(pa.scalar(value), count) for name, value in text.items()},
            "path": pc.binary_join_element_wise("../runs", common["run"], "/"),
            "seed": pa.array(random.integers(1, 2**31, count)),
            "repeat": pa.array(year.repeat),
            "commit": pa.array([year.commits[night] for night in year.night]),
            "outcome": pa.array(np.where(crashed, "crashed", "completed").tolist()),
            "verdict": pa.array(verdict.tolist()),
            "valid": pa.array(~(crashed | invalid)),
            "allow_failure": pa.repeat(pa.scalar(value=False), count),
            "reasons": pa.array([["the machine was 99 % busy"] if bad else [] for bad in invalid], TEXTS),
            "problems": pa.array([["the run died while running"] if bad else [] for bad in crashed], TEXTS),
            "started_ns": pa.array(((start + year.night * 86_400) * 1e9).astype(np.int64)),
            "duration_s": pa.array(random.normal(64.0, 1.0, count)),
            "captures_bytes": pa.array(random.integers(10**9, 2 * 10**9, count)),
        }
    )


def _long(
    common: Mapping[str, pa.Array],
    kept: np.ndarray,
    names: Mapping[str, list[str]],
    values: Mapping[str, np.ndarray],
) -> pa.Table:
    """Return a row for each kept run and each name, from matrices of runs and names."""
    width = len(next(iter(names.values())))
    of_run = pa.array(np.repeat(kept, width))
    of_name = pa.array(np.tile(np.arange(width), len(kept)))
    return pa.table(
        {
            **{name: column.take(of_run) for name, column in common.items()},
            **{name: pa.array(texts).take(of_name) for name, texts in names.items()},
            **{name: pa.array(matrix[kept].ravel()) for name, matrix in values.items()},
        }
    )


def _write(folder: Path, table: str, rows: pa.Table, year: _Calendar, suite: str) -> None:
    """Write a file for each night, as it is after the night."""
    rows = rows.sort_by([("night", "ascending"), ("run", "ascending")])
    ends = np.searchsorted(rows["night"].to_numpy(), np.arange(year.nights + 1))
    count = rows.num_rows
    rows = rows.append_column("schema", pa.repeat(pa.scalar(SCHEMA), count))
    rows = rows.append_column("suite", pa.repeat(pa.scalar(suite), count))
    fitted = rows.select(SCHEMAS[table].names).cast(SCHEMAS[table]).combine_chunks()
    for night in range(year.nights):
        file = night_file(folder, table, night_of(night, year.first))
        file.parent.mkdir(parents=True)
        pq.write_table(fitted.slice(ends[night], ends[night + 1] - ends[night]), file)
