"""The last phase: nodes end, the network is probed again, captures end, counters are read."""

import asyncio
import dataclasses

from testbed.captures import FLUSH_S, CaptureResult
from testbed.errors import TestbedError
from testbed.runner.building import probe
from testbed.runner.meeting import MeetingPlace
from testbed.runner.phases import Phase
from testbed.runner.stage import Stage

OTHERS_TIMEOUT_S = 30.0
"""For other machines to end their nodes too."""


async def collect(stage: Stage) -> None:
    """End everything in order and write down what it says. Parts that died are noted, and the rest
    collected.
    """
    for problem in await stage.processes.finish():
        stage.record.problem(problem)
    stage.note_processes()
    work = [asyncio.sleep(FLUSH_S)]  # captures must not end before: see there
    if not stage.ending.asked:
        work.append(_probe_again(stage))
    await asyncio.gather(*work)
    for result in await stage.captures.stop():
        stage.record.append("captures", _capture_json(stage, result))
    try:
        _note_counters(stage)
    except TestbedError as error:
        stage.record.problem(str(error))
    stage.record.time("ended_ns")
    stage.record.content["outcome"] = stage.ending.outcome
    stage.record.phase(Phase.COLLECTED)


async def _probe_again(stage: Stage) -> None:
    await stage.meeting.at(MeetingPlace.FINISHED, OTHERS_TIMEOUT_S)
    await probe(stage, "after")
    await stage.meeting.at(MeetingPlace.MEASURED, OTHERS_TIMEOUT_S)


def _capture_json(stage: Stage, result: CaptureResult) -> dict[str, object]:
    capture = result.capture
    return {
        "file": str(stage.record.directory.capture(capture.file).relative_to(stage.record.directory.path)),
        "host": capture.host,
        "link": capture.link,
        "side": capture.side,
        "interface": capture.interface,
        "packets": result.packets,
        "kernel_drops": result.kernel_drops,
    }


def _note_counters(stage: Stage) -> None:
    for (link, direction), counters in stage.emulator.counters().items():
        entry = {"link": link, "direction": str(direction), **dataclasses.asdict(counters)}
        stage.record.append("counters", entry)
        if counters.dropped_kernel:
            stage.record.problem(
                f"link {link} {direction}: the kernel dropped {counters.dropped_kernel} frames"
            )
