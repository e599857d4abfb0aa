"""Everything that stands while a run is on: what the phases hand to each other."""

from dataclasses import dataclass
from typing import Any

from testbed.captures import Captures
from testbed.links.model import Middles
from testbed.network import Network
from testbed.plan import Plan
from testbed.processes import NodeProcess, Processes
from testbed.runner.ending import Ending
from testbed.runner.meeting import Meeting
from testbed.runner.record import RunRecord
from testbed.share import Share


@dataclass(frozen=True, slots=True)
class Stage:
    """What of the plan is carried out here, and what was built from it. `specs` are the launcher's, by
    process name.
    """

    plan: Plan
    share: Share
    meeting: Meeting
    record: RunRecord
    ending: Ending
    network: Network
    middles: Middles
    captures: Captures
    processes: Processes
    specs: dict[str, dict[str, Any]]

    def having(self, trait: str) -> list[NodeProcess]:
        """The node processes with a trait that are running."""
        names = [process.name for process in self.plan.having(trait)]
        started = [self.processes.nodes[name] for name in names if name in self.processes.nodes]
        return [node for node in started if node.running]

    def note_processes(self) -> None:
        """Put what is known of the node processes into the record."""
        self.record.content["processes"] = [
            {"name": node.name, "host": node.host, "pid": node.pid, "exit": node.exit}
            for node in self.processes.history
        ]
