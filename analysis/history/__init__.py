"""The history of nights: every run's verdict, numbers and expectations, in Parquet that anything reads."""

from analysis.history.history_schemas import EVERYTHING, HistoryFilter
from analysis.history.metrics import Metric, headline
from analysis.history.record import ExpectationResult, RunRecord, record_of, record_of_failed_start
from analysis.history.store import History
from experiments.records.summary import Better

__all__ = [
    "EVERYTHING",
    "Better",
    "ExpectationResult",
    "History",
    "HistoryFilter",
    "Metric",
    "RunRecord",
    "headline",
    "record_of",
    "record_of_failed_start",
]
