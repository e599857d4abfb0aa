"""The report of a run: one self-contained page, and the same figures as PNG and SVG."""

from pathlib import Path

from experiments.rundir import RunDirectory

__all__ = ["write_report"]


def write_report(run: RunDirectory) -> Path:
    """Write report.html and figures/ of an analysed run; returns the page's path.

    Reads only run.json, summary.json and the timelines' Parquet tables. Writing again gives the same files.
    Raises InputError if there is no run, or no analysis of it yet.
    """
    from analysis.report.figures import write_figures  # noqa: PLC0415  (matplotlib takes long to import, and
    from analysis.report.page import render  # noqa: PLC0415  commands read only bands and quantities of this)
    from analysis.report.reading import read_record  # noqa: PLC0415

    record = read_record(run)
    write_figures(record, run)
    temporary = run.report_html.with_name(run.report_html.name + ".tmp")
    temporary.write_text(render(record), encoding="utf-8")
    temporary.replace(run.report_html)
    return run.report_html
