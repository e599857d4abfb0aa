"""Records of runs, written by hand."""

from typing import Any

from analysis.history import ExpectationResult, HistoryRecord, Metric

NIGHT = "2026-03-14"
P95, LOST = "latency.p95_ms", "events.lost"


def make_record(run: str = "20260314T020000Z-a-000001", night: str = NIGHT, **changes: Any) -> HistoryRecord:
    """Return the record of a passed run with two metrics and an expectation, with these changes."""
    given: dict[str, Any] = {
        "night": night, "run": run, "path": f"/somewhere/runs/{run}", "suite": "quick", "entry": "cut",
        "experiment": "link-failure", "settings": {"duration": "30s"}, "seed": 7, "repeat": 0,
        "commit": "c0ffee", "cutset": "0.1.0", "python": "3.11.7", "kernel": "6.1", "machine": {"cpus": 2},
        "links": "relay", "place": "local", "outcome": "completed", "verdict": "passed", "valid": True,
        "reasons": (), "problems": (), "started_ns": 1, "duration_s": 60.0, "captures_bytes": 1000,
        "metrics": (Metric(P95, 80.0, "ms", "lower"), Metric(LOST, 0.0, "events", "lower")),
        "expectations": (ExpectationResult("events.lost == 0", 0.0, True),),
    }  # fmt: skip
    return HistoryRecord(**given | changes)
