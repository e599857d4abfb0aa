"""The space-time diagrams of a run's report: one around each fault, as SVG among its figures."""

import base64
from dataclasses import dataclass

from analysis.inspect.diagram.choosing import Wanted
from analysis.inspect.diagram.drawing import diagram_svg
from analysis.inspect.diagram.making import around_fault, figure_name
from analysis.inspect.diagram.moments import fault_times
from analysis.pages.report.bands import fault_label
from analysis.pages.report.reading import RunRecord
from experiments.rundir import RunDirectory
from topologies.errors import InputError

DIAGRAMS_MAX = 12  # of a run with many faults the first ones: `cutset diagram` draws any


@dataclass(frozen=True, slots=True)
class FaultDiagram:
    """A picture that was written. `path` is relative to the page."""

    fault: str
    label: str
    path: str
    says: str  # what it shows, for who cannot see it
    command: str  # that draws it again
    width: int  # in pixels, as it was made to be seen
    height: int
    svg: str

    @property
    def encoded(self) -> str:
        """The picture in base64, for the page to stand by itself."""
        return base64.b64encode(self.svg.encode()).decode()


def write_diagrams(record: RunRecord, run: RunDirectory) -> tuple[FaultDiagram, ...]:
    """Draw the moment around each fault; nothing where no table of transfers is."""
    if not run.table("transfers").is_dir():
        return ()
    labels = {
        fault["name"]: fault_label(fault["kind"], fault["target"]) for fault in record.plan.get("faults", ())
    }
    made = []
    for fault in list(fault_times(record))[:DIAGRAMS_MAX]:
        try:
            scene = around_fault(run, record, fault)
        except InputError:
            continue  # no message was sent then, so there is nothing to draw
        path = run.figure(figure_name(fault, Wanted()), "svg")
        path.parent.mkdir(exist_ok=True)
        picture = diagram_svg(scene)
        path.write_text(picture.svg, encoding="utf-8")
        hosts = ", ".join(line.host for line in scene.lifelines)
        says = f"{scene.messages} messages between {hosts}, {scene.from_s:.2f} to {scene.to_s:.2f} s"
        made.append(
            FaultDiagram(
                fault=fault,
                label=labels.get(fault, fault),
                path=path.relative_to(run.path).as_posix(),
                says=says,
                command=scene.command,
                width=picture.width,
                height=picture.height,
                svg=picture.svg,
            )
        )
    return tuple(made)
