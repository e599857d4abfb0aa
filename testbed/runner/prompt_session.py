"""The second phase of an interactive run: it lasts until the user leaves the prompt; faults are injected on
request.
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Sequence
from typing import Any

from experiments.declared import Trait
from experiments.planned.change_text import change_values
from experiments.planned.changes import LinkChange
from experiments.planned.plan import Plan
from testbed.errors import TestbedError
from testbed.faults.application import AppliedChange, target
from testbed.runner.fault_injector import FaultInjector
from testbed.runner.prompt_process import PromptProcess
from testbed.runner.run_context import RunContext
from testbed.runner.running import SAVE_PERIOD_S, ProcessStarter, applier

PERIOD_S = 1.0  # nodes report four times as often


class DeliveryRates:
    """Delivery rates: `by_client` is {client: {stream: events per second}}, averaged over the last period."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.by_client: dict[str, dict[str, int]] = {}

    async def follow(self) -> None:
        """Update the rates periodically, until cancelled."""
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
            for client in self._context.having(Trait.SUBSCRIBER)
        }


Message = dict[str, Any]


class PromptSession:
    """Answers the prompt's requests until the user leaves."""

    def __init__(self, prompt: PromptProcess) -> None:
        self._prompt = prompt

    async def until_left(self, context: RunContext, starter: ProcessStarter, zero_ns: int) -> None:
        """Answer requests until the user leaves; see `testbed.runner.running.Until`."""
        faults = FaultInjector(context, zero_ns, applier(context, starter))
        rates = DeliveryRates(context)
        work = [
            asyncio.create_task(each)
            for each in (faults.execute(), rates.follow(), _save(context, faults.noted))
        ]
        try:
            opening = {
                "did": "open",
                "run": str(context.record.directory.path),
                "zero_ns": zero_ns,
                "pids": {host.name: host.pid for host in context.network.mininet.hosts},
            }
            problem = await self._prompt.talk(
                context.record, opening, lambda request: _answer(context, faults, rates, zero_ns, request)
            )
            if problem is not None:
                context.record.problem(problem)
            for each in work:
                if each.done():
                    each.result()
        finally:
            for each in work:
                each.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            faults.note()


async def _answer(
    context: RunContext, faults: FaultInjector, rates: DeliveryRates, zero_ns: int, request: Message
) -> Message:
    plan = context.record.content.plan
    try:
        match request["do"]:
            case "fault":
                applied = await faults.ask(request["fault"])
                return {
                    "did": "fault",
                    "name": faults.names[-1],
                    "changes": _as_messages(applied, zero_ns, plan),
                }
            case "faults":
                return {"did": "faults", "names": faults.names, "faults": faults.in_the_file}
            case "news":
                happened = _as_messages(faults.happened[request["changes"] :], zero_ns, plan)
                problems = list(context.record.content.problems[request["problems"] :])
                return {"did": "news", "changes": happened, "problems": problems}
            case "status":
                return {"did": "status", **faults.now(), **_status(context, rates, zero_ns)}
    except TestbedError as error:
        return {"did": "refused", "text": str(error)}
    return {"did": "refused", "text": f"the runner does not know the request {request['do']}"}


def _as_messages(applied: Sequence[AppliedChange], zero_ns: int, plan: Plan) -> list[Message]:
    return [
        {
            "what": target(each.change),
            "became": str(each.change.state if isinstance(each.change, LinkChange) else each.change.action),
            "values": change_values(each.change, plan),
            "at_s": (each.requested_ns - zero_ns) / 1e9,
            "took_ms": None if each.applied_ns is None else (each.applied_ns - each.requested_ns) / 1e6,
            "error": each.error,
            "fault": each.change.fault,
        }
        for each in applied
    ]


def _status(context: RunContext, rates: DeliveryRates, zero_ns: int) -> Message:
    nodes = context.processes.nodes
    planned = [process.name for process in context.plan.processes]
    return {
        "elapsed_s": (time.time_ns() - zero_ns) / 1e9,
        "running": sum(node.running for node in nodes.values()),
        "ended": [name for name in planned if name not in nodes or not nodes[name].running],
        "rates": rates.by_client,
        "free_bytes": shutil.disk_usage(context.record.directory.path).free,
        "problems": list(context.record.content.problems),
    }


async def _save(context: RunContext, something_new: asyncio.Event) -> None:
    """Save run.json periodically, and at once after a change."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SAVE_PERIOD_S):
                await something_new.wait()
        something_new.clear()
        await context.record.save_aside()
