"""The history of nights: verdict, numbers and expectations of every run, stored as Parquet files."""

from analysis.history.history_schemas import EVERYTHING, HistoryFilter
from analysis.history.metrics import Metric, headline
from analysis.history.record import ExpectationResult, HistoryRecord, record_from_run, record_of_failed_start
from analysis.history.store import History
from experiments.records.summary import Better

__all__ = [
    "EVERYTHING",
    "Better",
    "ExpectationResult",
    "History",
    "HistoryFilter",
    "HistoryRecord",
    "Metric",
    "headline",
    "record_from_run",
    "record_of_failed_start",
]
