"""The papers whose figures sweeps draw, by the name that experiments give them (`paper.document`)."""

from collections.abc import Mapping

from analysis.pages.report.charts.sweep_charts import ChartBuilder
from analysis.systems.sprinkler_figures import FIGURES

PAPERS: Mapping[str, Mapping[str, ChartBuilder]] = {"sprinkler-2013": FIGURES}
"""Builders of charts, by the number of the figure."""
