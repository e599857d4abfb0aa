"""The captures of a run. All code that reads bytes of its captures uses this module.

Unusable captures are left out, as in the analysis; its table of captures has the reason.
"""

from dataclasses import dataclass

from analysis.capture.clocks.machine_clocks import clock_of_capture, read_clocks
from analysis.capture.pcap.files.compressed import capture_name, readable
from analysis.jobs.extraction import load_indices
from analysis.taps.opening import Tap
from experiments.records.rundir import RunDirectory


@dataclass(frozen=True, slots=True)
class CaptureFile(Tap):
    """The capture of a host, or of one side of an emulated link."""

    host: str | None = None
    link: str | None = None

    @property
    def place(self) -> str:
        """The name shown to users: the host, or the link and its side."""
        return self.host or self.name


def captures_of(run: RunDirectory) -> list[CaptureFile]:
    """Return the readable captures of a run, in the order in which the run lists them."""
    indices, _ = load_indices(run)
    record = run.read_run()
    clocks = read_clocks(run, record)
    listed = {readable(run.capture(each.name)): each for each in record.listed_captures}
    return [
        CaptureFile(
            capture_name(path),
            path,
            indices[path],
            clock_of_capture(each, record, clocks),
            each.host,
            each.link,
        )
        for path, each in listed.items()
        if path in indices
    ]
