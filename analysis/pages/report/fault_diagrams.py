"""The space-time diagrams of the messages around each fault, for the page and beside it."""

from dataclasses import dataclass

from analysis.pages.diagram.drawing import Picture, diagram_svg
from analysis.pages.diagram.message_selection import DiagramQuery
from analysis.pages.diagram.scene_builder import around_fault, fault_times, figure_name
from analysis.pages.report.charts.bands import fault_label
from analysis.pages.report.run_reader import AnalysedRun
from experiments.files.whole_files import write_whole
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

DIAGRAMS_MAX = 12  # for the first faults of a run; `cutset diagram` draws any


@dataclass(frozen=True, slots=True)
class FaultDiagram:
    """A diagram that was written. `path` is relative to the page."""

    fault: str
    label: str
    path: str
    says: str  # description for screen readers
    picture: Picture


def write_diagrams(record: AnalysedRun, run: RunDirectory) -> tuple[FaultDiagram, ...]:
    """Draw the time window around each fault; none without a table of transfers."""
    if not run.table("transfers").is_dir():
        return ()
    labels = {fault.name: fault_label(fault.kind, fault.target) for fault in record.plan.faults}
    made = []
    for fault in list(fault_times(record))[:DIAGRAMS_MAX]:
        try:
            scene = around_fault(run, record, fault)
        except InputError:
            continue  # no message was sent in the window
        path = run.figure(figure_name(fault, DiagramQuery()), "svg")
        path.parent.mkdir(exist_ok=True)
        picture = diagram_svg(scene)
        write_whole(path, picture.svg, sync=False)
        hosts = ", ".join(line.host for line in scene.lifelines)
        says = f"{scene.messages} messages between {hosts}, {scene.from_s:.2f} to {scene.to_s:.2f} s"
        made.append(
            FaultDiagram(
                fault=fault,
                label=labels.get(fault, fault),
                path=path.relative_to(run.path).as_posix(),
                says=says,
                picture=picture,
            )
        )
    return tuple(made)
