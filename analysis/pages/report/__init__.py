"""The report of a run: one self-contained page, and the same figures as PNG and SVG."""

from pathlib import Path

from experiments.files.whole_files import write_whole
from experiments.records.rundir import RunDirectory

__all__ = ["write_page", "write_report"]


def write_report(run: RunDirectory) -> Path:
    """Write report.html and figures/ of an analysed run. Returns the page's path.

    Figures are drawn while the page is rendered. Reads only run.json, summary.json, the timelines' Parquet
    tables and the transfers around faults. The same directory always gives the same files; commands in the
    page name the run relative to the current directory. Raises InputError if there is no run, no analysis of
    it, or a folder of it is a link.
    """
    from analysis.jobs.work import run_alongside  # noqa: PLC0415

    run.check_folders()
    with run_alongside(_draw, run, doing="drawing figures"):
        return write_page(run)


def write_page(run: RunDirectory) -> Path:
    """Write report.html and the pictures of messages around faults. Returns the page's path."""
    # Some commands read only quantities of this package; its templates take long to import.
    from analysis.pages.report import content  # noqa: PLC0415
    from analysis.pages.report.fault_diagrams import write_diagrams  # noqa: PLC0415
    from analysis.pages.report.page import render  # noqa: PLC0415
    from analysis.pages.report.run_reader import read_record  # noqa: PLC0415
    from analysis.systems.catalog import sections  # noqa: PLC0415

    record = read_record(run)
    more = (*content.section(record, run), *sections(record, run))
    page = render(record, run, write_diagrams(record, run), more)
    write_whole(run.report_html, page)
    return run.report_html


def _draw(run: RunDirectory) -> None:
    """Draw the figures. matplotlib takes long to import; here it delays no other work."""
    from analysis.pages.report.charts.figures import write_figures  # noqa: PLC0415
    from analysis.pages.report.run_reader import read_record  # noqa: PLC0415

    write_figures(read_record(run), run)
