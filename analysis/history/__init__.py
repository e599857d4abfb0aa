"""The history of nights: every run's verdict, numbers and expectations, in Parquet that anything reads."""

from analysis.history.metrics import Metric, headline
from analysis.history.record import Kept, RunRecord, record_of, record_of_failed_start
from analysis.history.schemas import EVERYTHING, Where
from analysis.history.store import History
from experiments.summary import Better

__all__ = [
    "EVERYTHING",
    "Better",
    "History",
    "Kept",
    "Metric",
    "RunRecord",
    "Where",
    "headline",
    "record_of",
    "record_of_failed_start",
]
