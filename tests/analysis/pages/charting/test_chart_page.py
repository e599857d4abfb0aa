"""Charts in pages: names are escaped, data is embedded once, and the library is unchanged."""

import hashlib
import json

import pytest

from analysis.pages.charting.chart_model import (
    Axis,
    Chart,
    ChartMark,
    ChartSeries,
    ChartSpan,
    Reference,
)
from analysis.pages.charting.chart_page import LIBRARY, as_json, embedded
from analysis.pages.report.formatting import tick_text

HOSTILE = '"></script><img src=x onerror="boom()">&'


def chart(*series: ChartSeries, **more: object) -> Chart:
    """Return a chart of one to four series."""
    looks = {"key": "k", "title": "T", "x": Axis("seconds", "s"), "y": Axis("delay, ms", "ms")} | more
    return Chart(series=series, **looks)  # type: ignore[arg-type]


def test_the_embedded_library_equals_the_published_package() -> None:
    sums = dict(reversed(line.split()) for line in (LIBRARY / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in LIBRARY.iterdir()} - {"SHA256SUMS"}
    assert {name: hashlib.sha256((LIBRARY / name).read_bytes()).hexdigest() for name in sums} == sums
    assert "Permission is hereby granted, free of charge" in (LIBRARY / "LICENSE").read_text()
    assert sums["uPlot.iife.min.js"] == "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"


def test_names_are_escaped_everywhere() -> None:
    html = embedded(
        chart(
            ChartSeries(HOSTILE, "red", (0, 1), (1, 2), label=HOSTILE, subject=HOSTILE),
            title=HOSTILE,
            spans=(ChartSpan(HOSTILE, 1, 2, HOSTILE, (HOSTILE,)),),
            marks=(ChartMark(HOSTILE, 3),),
            references=(Reference(HOSTILE, 1, 1),),
        )
    )
    assert "<img" not in html
    assert html.count("<script") == html.count("</script>") == 1
    data = json.loads(html.partition('json">')[2].partition("</script>")[0])
    assert data["series"][0]["name"] == data["spans"][0]["links"][0] == data["marks"][0]["label"] == HOSTILE


def test_equal_x_values_are_embedded_once_and_defaults_omitted() -> None:
    data = as_json(
        chart(ChartSeries("a", "red", (0, 1), (1, None)), ChartSeries("b", "blue", [0, 1], (2, 3)))
    )
    assert data["xs"] == [(0, 1)]
    assert data["series"][0] == {"name": "a", "colour": "red", "x": 0, "y": (1, None)}
    assert set(data) == {"key", "title", "xs", "x", "y", "series"}


def test_nan_is_a_gap() -> None:
    data = as_json(chart(ChartSeries("a", "red", (0, 1, 2), (float("nan"), float("inf"), 1.0))))
    assert data["series"][0]["y"] == (None, None, 1.0)


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (0.02, "0.02"), (1500, "1500"), (80_000, "80 000"), (2.5e6, "2.5 M"), (3e9, "3 G")],
)
def test_ticks_are_written_as_tables_write_numbers(value: float, written: str) -> None:
    assert tick_text(value).replace("\u202f", " ").replace("\u00a0", " ") == written
