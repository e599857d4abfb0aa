"""Control of a run from outside the sandbox: writes the plan, starts the sandbox, follows the run.

Works in the CLI's main thread. The follower determines the output. The first Ctrl-C or SIGTERM requests an
orderly stop, the second kills.
"""

import contextlib
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from experiments.child_python import python_command
from experiments.planned.plan import Plan
from experiments.records.run_record import RunRecord, Times, write_record
from experiments.records.rundir import RunDirectory
from testbed import congestion_control
from testbed.capturing.capture_size import disk_needed_bytes
from testbed.errors import MachineError, TestbedError
from testbed.execution.record import RUNNER_LOG, record_end
from testbed.interrupts import handling
from testbed.network.routing.daemons import check_routing, routing_versions
from testbed.programs import check_needs, versions_of
from testbed.resources import check_resources
from testbed.runner.throttles import EVERY_VARIABLE, throttled
from testbed.runner.versions import commit, described_machine, versions
from testbed.sandbox import Sandbox
from testbed.sandbox.channel import SandboxChannel
from testbed.sandbox.control_groups import why_no_groups
from testbed.sandbox.requirements import RUN_TOOLS, check_tools
from testbed.traffic import check_generator, generator_versions

Follow = Callable[[dict[str, Any]], None]
"""Called with each message of the run (`testbed.execution.record`), and with {} if none came for a while."""

LOOK_S = 0.25
DISK_RESERVE_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended; `by_user`: whether the user stopped it."""

    record: RunRecord
    by_user: bool


def prepare(
    out: Path,
    plan: Plan,
    described: dict[str, Any],
    directory: Callable[[], RunDirectory] | None = None,
) -> RunDirectory:
    """Create the run's directory below `out`, with a run.json that holds the plan.

    described: the resolved `experiment` and `topology` as plain JSON. directory: creates it, if the caller
    determines its name. Raises MachineError if it cannot be written.
    """
    try:
        if directory is not None:
            run = directory()
        else:
            run = RunDirectory.create(out, plan.experiment, datetime.now(UTC), secrets.token_hex(3))
        write_record(run.run_json, planned_record(run, plan, described))
    except OSError as error:
        raise MachineError(f"cannot write the run below {out}: {error.strerror}") from error
    return run


def check_machine(out: Path, plan: Plan) -> None:
    """Create `out`. Raises MachineError if that fails, a program is missing or the machine is too small."""
    check_tools(RUN_TOOLS)
    check_resources(plan)
    check_needs(plan)
    check_generator(plan)
    check_routing(plan)
    congestion_control.check(plan)
    check_disk(out, plan)
    if throttled(plan) and (problem := why_no_groups()) is not None:
        raise MachineError(f"processes cannot be throttled here: {problem}")


def check_disk(out: Path, plan: Plan) -> None:
    """Create `out`. Raises MachineError if that fails, or if the captures would not fit on the disk."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(out).free
    except OSError as error:
        raise MachineError(f"cannot write the run below {out}: {error.strerror}") from error
    needed = disk_needed_bytes(plan) + DISK_RESERVE_BYTES
    if free < needed:
        raise MachineError(
            f"the captures need about {needed >> 20} MiB at {out}, but only {free >> 20} MiB are free: "
            "choose another directory with --out, a shorter run, or a snap length"
        )


def execute(run: RunDirectory, follow: Follow, *, prompt: str | None = None) -> RunResult:
    """Execute the run in a sandbox.

    prompt: the module of the prompt, which has this process's terminal during the run; the run lasts until
    the user leaves it. `follow` must print nothing between the messages that the prompt opens and has closed.

    Raises MachineError or TestbedError if the run broke before there was anything to analyse,
    KeyboardInterrupt after a second Ctrl-C.
    """
    try:
        return _in_sandbox(run, follow, prompt)
    except KeyboardInterrupt:
        record_end(run, by_user=True)
        raise


def _in_sandbox(run: RunDirectory, follow: Follow, prompt: str | None) -> RunResult:
    every = prompt is not None and why_no_groups() is None  # the user may throttle any process
    command = python_command("testbed.runner", str(run.path.resolve()), *filter(None, [prompt]))
    stdin = subprocess.DEVNULL if prompt is None else sys.stdin
    failed: dict[str, Any] = {}
    with (
        (run.logs / RUNNER_LOG).open("w+") as errors,
        Sandbox(
            command,
            token=run.name,
            errors=errors,
            stdin=stdin,
            environment={EVERY_VARIABLE: run.name} if every else None,
            control_groups=every or bool(throttled(run.read_run().plan)),
        ) as sandbox,
        interruptible(sandbox.channel.post) as user,
    ):
        sandbox.channel.expect_life()
        for message in _messages(sandbox.channel):
            if message.get("did") == "failed":
                failed = message
            follow(message)
            if message.get("did") == "prompt":
                user.at_prompt = message["open"]
                sandbox.channel.post({"do": "open"})
    record = record_end(run, hung=sandbox.channel.hung)
    if failed:
        raise MachineError(failed["text"]) if failed["kind"] == "machine" else TestbedError(failed["text"])
    return RunResult(record, by_user=user.asked)


def _messages(channel: SandboxChannel) -> Iterator[dict[str, Any]]:
    while not channel.ended:
        yield channel.receive(LOOK_S) or {}


@dataclass(slots=True)
class _User:
    """The signals of the user so far, and whether the prompt is open, which handles Ctrl-C itself."""

    asked: bool = False
    at_prompt: bool = False


@contextlib.contextmanager
def interruptible(post: Callable[[dict[str, Any]], object]) -> Iterator[_User]:
    """Handle Ctrl-C and SIGTERM: the first stops the run in order, the second raises KeyboardInterrupt."""
    user = _User()

    def handle(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and user.at_prompt:
            post({"do": "interrupt"})
            return
        if user.asked:
            raise KeyboardInterrupt
        user.asked = True
        post({"do": "stop"})

    with handling(dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), handle)):
        yield user


def planned_record(run: RunDirectory, plan: Plan, described: dict[str, Any]) -> RunRecord:
    """Return the record of a run that has not begun."""
    return RunRecord(
        plan,
        run=run.name,
        **described,
        seed=plan.seed,
        links=plan.links_kind,
        commit=commit(),
        versions=versions() | versions_of(plan) | generator_versions(plan) | routing_versions(plan),
        machine=described_machine(),
        times=Times(started_ns=time.time_ns()),
    )
