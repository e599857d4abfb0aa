"""Carries out one planned run where it is to run, and analyses it: where the testbed's half and the
analysis' half meet.
"""

import contextlib
import shutil
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.rundir import RunDirectory
    from testbed.backends.place import Place
    from testbed.cli.following import Follower
    from testbed.cli.watching import Watching
    from testbed.runner.start import Ended

ANALYSIS_DISK_BYTES = 64 << 20


def perform(
    run: "RunDirectory",
    place: "Place",
    follow: "Follower",
    *,
    analyze: bool,
    watching: "Watching | None" = None,
) -> "Ended":
    """Run it where it is to run.

    analyze: whether an analysis follows, so that Spark may already start. watching: who is told how it goes;
    its parts of captures are joined in the end. Raises what the place's own way of running raises:
    MachineError, TestbedError, KeyboardInterrupt.
    """

    def hear(message: dict[str, Any]) -> None:
        follow(message)
        if watching is not None:
            watching.exchange(message, follow)
        if analyze and message.get("did") == "drained":
            _start_spark_aside(run)

    ended = place.carry_out(run, hear)
    if watching is not None:
        watching.read_rest(follow)
        _join_parts(run, follow)
    return ended


def _join_parts(run: "RunDirectory", follow: "Follower") -> None:
    """What cannot be joined now, an analysis joins later."""
    from experiments.capture_parts import join_all
    from topologies.errors import InputError

    follow.say("joining the parts of captures")
    try:
        join_all(run.captures)
    except InputError as error:
        follow.show(f"problem: {error}")


def analyse(run: "RunDirectory", ended: "Ended", follow: "Follower") -> dict[str, Any] | None:
    """The summary, or None with a line that says why there is none."""
    if not ended.measured:
        follow.say("not analysed: the run ended before its nodes published anything")
        return None
    if shutil.disk_usage(run.path).free < ANALYSIS_DISK_BYTES:
        follow.say(f"not analysed, for want of disk: make some free, then `cutset analyze {run.path}`")
        return None
    from analysis.pipeline import analyze

    summary: dict[str, Any] = analyze(run, master=None, progress=follow.say)
    return summary


def write_page(run: "RunDirectory", follow: "Follower") -> None:
    """Write an analysed run's report."""
    from analysis.report import write_report

    follow.say("writing the report")
    write_report(run)


def _start_spark_aside(run: "RunDirectory") -> None:
    """Java needs seconds to start: let it, if this run is going to need it, while the run's last files are
    closed and nothing is measured any more.
    """

    def start() -> None:
        from analysis.errors import AnalysisError
        from analysis.workers.choice import start_ahead

        # The analysis starts it again, and says what is wrong.
        with contextlib.suppress(AnalysisError):
            start_ahead(run)

    threading.Thread(target=start, name="spark", daemon=True).start()
