"""The second phase when somebody is at the prompt: it lasts as long as they like; faults come as asked."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Sequence
from typing import Any

from experiments.declared import Trait
from experiments.plan import LinkChange
from testbed.errors import TestbedError
from testbed.faults.application import Carried, target
from testbed.runner.by_hand import FaultsAsAsked
from testbed.runner.prompt import Prompt
from testbed.runner.running import SAVE_PERIOD_S, applier
from testbed.runner.stage import Stage
from testbed.runner.starting import Starts

PERIOD_S = 1.0  # nodes report four times as often


class Rates:
    """`by_client` is {client: {stream: events a second}}, on average over the last period."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.by_client: dict[str, dict[str, int]] = {}

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        before, before_s = self._delivered(), time.monotonic()
        while True:
            await asyncio.sleep(PERIOD_S)
            after, after_s = self._delivered(), time.monotonic()
            self.by_client = {
                name: {
                    stream: round(max(0, seq - before.get(name, {}).get(stream, 0)) / (after_s - before_s))
                    for stream, seq in streams.items()
                }
                for name, streams in after.items()
            }
            before, before_s = after, after_s

    def _delivered(self) -> dict[str, dict[str, int]]:
        return {
            client.name: {str(stream): seq for stream, seq in client.delivered.items()}
            for client in self._stage.having(Trait.SUBSCRIBER)
        }


Message = dict[str, Any]


class AtThePrompt:
    """Answers what the prompt asks, until whoever is there leaves."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt

    async def until_left(self, stage: Stage, starts: Starts, zero_ns: int) -> None:
        """See `testbed.runner.running.Until`."""
        faults = FaultsAsAsked(stage, zero_ns, applier(stage, starts))
        rates = Rates(stage)
        work = [
            asyncio.create_task(each)
            for each in (faults.carry_out(), rates.follow(), _save(stage, faults.noted))
        ]
        try:
            opening = {
                "did": "open",
                "run": str(stage.record.directory.path),
                "zero_ns": zero_ns,
                "pids": {host.name: host.pid for host in stage.network.mininet.hosts},
            }
            problem = await self._prompt.talk(
                stage.record, opening, lambda asked: _answer(stage, faults, rates, zero_ns, asked)
            )
            if problem is not None:
                stage.record.problem(problem)
            for each in work:
                if each.done():
                    each.result()
        finally:
            for each in work:
                each.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            faults.note()


async def _answer(stage: Stage, faults: FaultsAsAsked, rates: Rates, zero_ns: int, asked: Message) -> Message:
    try:
        match asked["do"]:
            case "fault":
                carried = await faults.ask(asked["fault"])
                return {"did": "fault", "name": faults.names[-1], "changes": _told(carried, zero_ns)}
            case "faults":
                return {"did": "faults", "names": faults.names, "faults": faults.in_the_file}
            case "news":
                happened = _told(faults.happened[asked["changes"] :], zero_ns)
                problems = stage.record.content["problems"][asked["problems"] :]
                return {"did": "news", "changes": happened, "problems": problems}
            case "status":
                return {"did": "status", **faults.now(), **_status(stage, rates, zero_ns)}
    except TestbedError as error:
        return {"did": "refused", "text": str(error)}
    return {"did": "refused", "text": f"the runner knows no {asked['do']}"}


def _told(carried: Sequence[Carried], zero_ns: int) -> list[Message]:
    return [
        {
            "what": target(each.change),
            "became": str(each.change.state if isinstance(each.change, LinkChange) else each.change.action),
            "at_s": (each.requested_ns - zero_ns) / 1e9,
            "took_ms": None if each.applied_ns is None else (each.applied_ns - each.requested_ns) / 1e6,
            "error": each.error,
            "fault": each.change.fault,
        }
        for each in carried
    ]


def _status(stage: Stage, rates: Rates, zero_ns: int) -> Message:
    nodes = stage.processes.nodes
    planned = [process.name for process in stage.plan.processes]
    return {
        "elapsed_s": (time.time_ns() - zero_ns) / 1e9,
        "running": sum(node.running for node in nodes.values()),
        "ended": [name for name in planned if name not in nodes or not nodes[name].running],
        "rates": rates.by_client,
        "free_bytes": shutil.disk_usage(stage.record.directory.path).free,
        "problems": stage.record.content["problems"],
    }


async def _save(stage: Stage, something_new: asyncio.Event) -> None:
    """Every now and then, and at once when there is something new."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SAVE_PERIOD_S):
                await something_new.wait()
        something_new.clear()
        await stage.record.save_aside()
