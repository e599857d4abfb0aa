"""Topologies from round-trip times between regions, as cloud providers and measurement sites publish them.

There are two forms of CSV; both may have comment lines that begin with #. A matrix has the regions' names in
its first row and first column, and round-trip times in milliseconds; a cell may be empty, as on the diagonal.
A list has a row for each pair, with columns `from`, `to`, `rtt_ms` and, if known, `jitter_ms` and
`loss_percent`, all for round trips.

A round trip has no direction: if both regions measured it, the mean is used. A link's delay is half of it,
less the delay of both LANs; a direction has half of the jitter, and a loss such that both directions together
have the loss of round trips. The real links are not known: every measured pair gets its own link.
"""

import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from topologies.bounded_files import decoded, number_in, read_bounded, rows_of
from topologies.errors import InputError
from topologies.model import LINKS_MAX, REGIONS_MAX
from topologies.quantities import DURATION
from topologies.region_names import region_name
from topologies.strict import suggestion

FOLDER = Path(__file__).parent.parent / "matrices"
BYTES_MAX = 16 << 20
RTT_MS_MAX = 60_000.0
LOSS_PERCENT_MAX = 99.0
LIST_COLUMNS = ("from", "to", "rtt_ms")
LAN_DELAY_US = 250
_US_PER_MS = 1_000


@dataclass(frozen=True, slots=True)
class MeasuredRoundTrip:
    """Measured round trips between two regions, in ms; loss is a fraction. None: not measured."""

    rtt_ms: float
    jitter_ms: float | None = None
    loss: float | None = None


Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Regions in the file's order, and the measurements between them.

    written: the name of each region in the file; a topology allows only letters, digits and hyphens.
    """

    regions: tuple[str, ...]
    pairs: Mapping[Pair, MeasuredRoundTrip]
    written: Mapping[str, str]

    def restricted_to(self, wanted: Collection[str]) -> "Matrix":
        """Return the matrix of some regions, by either name, in its own order.

        Raises ValueError for an unknown name.
        """
        known = {
            **{name: region for region, name in self.written.items()},
            **{each: each for each in self.regions},
        }
        for name in wanted:
            if name not in known:
                raise ValueError(f"there is no region {name}{suggestion(name, self.regions)}")
        chosen = {known[name] for name in wanted}
        kept = tuple(region for region in self.regions if region in chosen)
        pairs = {pair: each for pair, each in self.pairs.items() if set(pair) <= chosen}
        return Matrix(kept, pairs, {region: self.written[region] for region in kept})

    @property
    def renamed(self) -> Mapping[str, str]:
        """The regions whose names differ from those in the file, by the file's name."""
        return {name: region for region, name in self.written.items() if name != region}


def matrix_file(name_or_path: str) -> Path:
    """Return a file by its path (with a slash, or ending in .csv), or by a name that comes with Cutset.

    Raises InputError with the known names.
    """
    if "/" in name_or_path or name_or_path.endswith(".csv"):
        return Path(name_or_path)
    known = sorted(path.stem for path in FOLDER.glob("*.csv"))
    if name_or_path not in known:
        problem = f"no matrix of this name: known are {', '.join(known)}; a path works too"
        raise InputError(name_or_path, None, "", problem)
    return FOLDER / f"{name_or_path}.csv"


def read_matrix(path: Path) -> Matrix:
    """Read a file of either form. Raises InputError with file and line."""
    file = str(path)
    return _Reader(file, decoded(read_bounded(path, file, BYTES_MAX), file)).read()


class _Reader:
    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._names: dict[str, str] = {}  # name in the file -> name of the region
        self._found: dict[Pair, list[MeasuredRoundTrip]] = defaultdict(list)

    def read(self) -> Matrix:
        rows = list(self._rows())
        if len(rows) < 2:
            raise self._wrong(None, "has no rows: a first one with names, then one for each region or pair")
        (at, header), *rest = rows
        columns = [cell.strip().lower() for cell in header]
        if set(LIST_COLUMNS) <= set(columns):
            self._read_list(columns, rest)
        else:
            self._read_square(at, header[1:], rest)
        regions = tuple(dict.fromkeys(self._names.values()))
        if not 2 <= len(regions) <= REGIONS_MAX:
            raise self._wrong(None, f"has {len(regions)} regions: there should be 2 to {REGIONS_MAX}")
        if len(self._found) > LINKS_MAX:
            raise self._wrong(None, f"has more than {LINKS_MAX} pairs: choose some of the regions")
        order = {region: place for place, region in enumerate(regions)}
        pairs = sorted(self._found, key=lambda pair: (order[pair[0]], order[pair[1]]))
        written = {region: name for name, region in self._names.items()}
        return Matrix(regions, {pair: _mean(self._found[pair]) for pair in pairs}, written)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        for number, line in rows_of(self._text):
            try:
                (row,) = csv.reader(io.StringIO(line), strict=True)
            except (csv.Error, ValueError):
                raise self._wrong(number, "is not a line of CSV") from None
            yield number, row

    def _read_square(self, at: int, names: Sequence[str], rows: Sequence[tuple[int, list[str]]]) -> None:
        columns = [self._region(at, name) for name in names]
        if len(set(columns)) < len(columns):
            raise self._wrong(at, "names a region twice")
        for number, (name, *cells) in rows:
            own = self._region(number, name)
            if len(cells) > len(columns):
                raise self._wrong(number, f"has {len(cells)} values for {len(columns)} regions")
            for other, cell in zip(columns, cells, strict=False):
                if cell.strip() and other != own:
                    self._add(own, other, MeasuredRoundTrip(self._round_trip(number, cell)))

    def _read_list(self, columns: Sequence[str], rows: Sequence[tuple[int, list[str]]]) -> None:
        for number, cells in rows:
            row = dict(zip(columns, cells, strict=False))
            if any(not row.get(name, "").strip() for name in LIST_COLUMNS):
                raise self._wrong(number, f"should have {', '.join(LIST_COLUMNS)}")
            own, other = self._region(number, row["from"]), self._region(number, row["to"])
            if own == other:
                continue
            jitter_ms = self._number(number, row, "jitter_ms", RTT_MS_MAX)
            percent = self._number(number, row, "loss_percent", LOSS_PERCENT_MAX)
            lost = None if percent is None else percent / 100
            self._add(own, other, MeasuredRoundTrip(self._round_trip(number, row["rtt_ms"]), jitter_ms, lost))

    def _add(self, own: str, other: str, measured: MeasuredRoundTrip) -> None:
        order = list(dict.fromkeys(self._names.values()))
        pair = (own, other) if order.index(own) < order.index(other) else (other, own)
        self._found[pair].append(measured)

    def _region(self, line: int, written: str) -> str:
        """Return the region's name for a name in the file."""
        written = written.strip()
        if written not in self._names:
            name = region_name(written)
            if not name:
                raise self._wrong(line, "has a region without a name")
            same = next(
                (other for other, known in self._names.items() if known.lower() == name.lower()), None
            )
            if same is not None:
                raise self._wrong(line, f"{same} and {written} would both be called {name}")
            self._names[written] = name
        return self._names[written]

    def _round_trip(self, line: int, cell: str) -> float:
        value = self._number(line, {"rtt_ms": cell}, "rtt_ms", RTT_MS_MAX)
        if not value:
            raise self._wrong(line, f"rtt_ms {cell.strip()} should be more than 0")
        return value

    def _number(self, line: int, row: Mapping[str, str], name: str, most: float) -> float | None:
        text = row.get(name, "").strip()
        return number_in(text, file=self._file, line=line, name=name, most=most) if text else None

    def _wrong(self, line: int | None, problem: str) -> InputError:
        return InputError(self._file, line, "", problem)


def _mean(measured: Sequence[MeasuredRoundTrip]) -> MeasuredRoundTrip:
    jitters = [each.jitter_ms for each in measured if each.jitter_ms is not None]
    losses = [each.loss for each in measured if each.loss is not None]
    return MeasuredRoundTrip(
        fmean(each.rtt_ms for each in measured),
        fmean(jitters) if jitters else None,
        fmean(losses) if losses else None,
    )


def topology_text(matrix: Matrix, name: str, described: str, rate: str) -> str:
    """Return the text of a topology file. rate: of each link, in a topology's form; "" is unlimited."""
    lan = f"{{lan: {{delay: {DURATION.format(LAN_DELAY_US)}, rate: 1gbit}}}}"
    lines = [f"name: {json.dumps(name)}", f"description: {json.dumps(described)}", "regions:"]
    lines += [f"  {region}: {lan}" for region in matrix.regions]
    lines.append("links:")
    lines += [f"  - {_link(pair, each, rate)}" for pair, each in matrix.pairs.items()]
    return "\n".join(lines) + "\n"


def _link(pair: Pair, measured: MeasuredRoundTrip, rate: str) -> str:
    delay_us = max(0, round(measured.rtt_ms * _US_PER_MS / 2) - 2 * LAN_DELAY_US)
    jitter_us = min(delay_us, round((measured.jitter_ms or 0.0) * _US_PER_MS / 2))
    lost = 1 - math.sqrt(1 - (measured.loss or 0.0))
    fields = [f"between: [{pair[0]}, {pair[1]}]", f"delay: {DURATION.format(delay_us)}"]
    fields += [f"jitter: {DURATION.format(jitter_us)}"] if jitter_us else []
    fields += [f"loss: {lost * 100:.6g}%"] if lost else []
    fields += [f"rate: {rate}"] if rate else []
    return "{" + ", ".join(fields) + "}"
