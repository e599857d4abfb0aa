"""The whole analysis of a run: captures to packets and messages, to events, to timelines, to summary.json.

Reads only the run directory and may be repeated at any time with the same result. Tables are written next to
their final place and renamed when complete; summary.json is written last. The analysis uses what is
available: the captures of a run that crashed or was interrupted, or the nodes' own records if there are no
captures; the summary notes which. Values that cannot be measured are null in the summary, with a reason. The
steps are in `analysis.timelines`.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from analysis import tables
from analysis.jobs.choice import WorkersFor, workers_at
from analysis.jobs.work import InlineWorkers, ProcessPool, Workers
from analysis.run_case import AnalysisCase, open_case, without_unread_messages
from analysis.run_findings import Results, findings_of
from analysis.run_tasks import FOLLOWED, RECORDS, TABLES, first_tasks, stream_tasks
from analysis.tables import staged_tables
from analysis.timelines import schemas
from analysis.timelines.delivery.expected import all_events_due_to_all
from analysis.timelines.delivery.total_order import with_disorder
from analysis.timelines.summary import summarize
from analysis.timelines.tasks.records import RecordFiles
from analysis.timelines.tasks.results import empty_results, execute
from experiments.files.whole_files import remove
from experiments.records.json_files import write_json
from experiments.records.rundir import RunDirectory


def analyze(
    run: RunDirectory, *, workers_for: WorkersFor | None = None, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Analyse a run: write its tables and summary.json, and return the summary.

    workers_for: the workers to use (`analysis.jobs.choice.workers_at`); None uses this machine. progress:
    called with the name of each step when it begins. Raises AnalysisError or InputError if nothing can be
    analysed, if there is no cluster, or if a folder of the run is a link.
    """
    run = RunDirectory(run.path.absolute())  # workers may have another working directory
    case = open_case(run, ProcessPool.of_this_machine(), progress)
    if not case.anything:
        return _analyze(case, progress, InlineWorkers())
    run.analysis.mkdir(exist_ok=True)
    with ExitStack() as stack:
        found = workers_for or stack.enter_context(workers_at())
        return _analyze(case, progress, stack.enter_context(found(run, progress)))


def analyze_here(run: RunDirectory, *, progress: Callable[[str], None]) -> dict[str, Any]:
    """Analyse a run in this process, one task after the other, for use within Spark's tasks.

    Raises AnalysisError or InputError as `analyze`.
    """
    here = InlineWorkers()
    return _analyze(open_case(run, here, progress), progress, here)


def _analyze(case: AnalysisCase, progress: Callable[[str], None], workers: Workers) -> dict[str, Any]:
    run = case.run
    run.analysis.mkdir(exist_ok=True)
    if case.hosts or case.links:
        progress("reading packets and messages")
        tables.extract(workers, run)
        case = without_unread_messages(case)
    results = _results(case, workers, progress) if case.anything else empty_results()
    progress("summing up")
    summary = summarize(case.record, case.metadata, findings_of(case, results))
    write_json(run.summary_json, summary)
    return summary


def _results(case: AnalysisCase, workers: Workers, progress: Callable[[str], None]) -> Results:
    """Return the combined results of all tasks. Also writes the table of events."""
    run, metadata = case.run, case.metadata
    progress("following events")
    in_packets = case.decoded and not metadata.by_host and all_events_due_to_all(metadata)
    written = None if in_packets else RecordFiles(run.table(RECORDS))
    with staged_tables(run, TABLES | ({RECORDS: schemas.RECORDS} if written else {})) as folders:
        results = execute(workers, first_tasks(case, folders), "turning messages into events")
    progress("following streams")
    followed = execute(workers, stream_tasks(case, written), "following streams")
    results["deliveries"] = with_disorder(results["deliveries"], results["disorder"])
    remove(run.table(RECORDS))  # redundant: the nodes' own files remain
    return results | {name: followed[name] for name in FOLLOWED}
