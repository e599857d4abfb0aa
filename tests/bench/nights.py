"""How fast the morning page is made over a year of nights: all of it, and again a night later.

The year is simulated (365 nights of 20 experiments, three runs of each, five on Sundays, so 24,000 runs). The
check of the night is made before and not counted: it is a subject of its own.
"""

import tempfile
import time
from pathlib import Path

from analysis.history.regressions.checking import check_night
from analysis.pages.nights import write_site
from tests.analysis.history.year import SUITE, Planted, make_year
from tests.bench.rows import Row, row

PLANTED = (
    Planted("link-failure-00", "throughput.events_per_s", 350, -0.10),
    Planted("link-failure-05", "recovery.cut.switch_s", 362, 0.30),
    Planted("throughput-01", "latency.p95_ms", 200, 0.10),
)
ASKED_S = 30


def measure() -> list[Row]:
    """Make a year, write its site twice, delete both. Needs 300 MB below the temporary directory."""
    with tempfile.TemporaryDirectory(prefix="cutset-bench-") as name:
        history = make_year(Path(name) / "history", planted=PLANTED)
        checked = {SUITE: check_night(history, history.nights()[-1], SUITE)}
        site = Path(name) / "site"
        rows = []
        for what, asked in (("the page of a year, all of it", ASKED_S), ("again, a night later", ASKED_S)):
            began = time.perf_counter()
            write_site(history, site, checked)
            seconds = time.perf_counter() - began
            missed = seconds > asked
            rows.append(row(what, seconds, "s", asked, missed=missed))
        pages = sum(1 for _ in site.rglob("*.html"))
        size = sum(page.stat().st_size for page in site.rglob("*.html"))
        rows.append(row("pages of it", pages, "pages"))
        rows.append(row("all pages", size / 1e6, "MB"))
        return rows
