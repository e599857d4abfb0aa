"""Runs a proxy or a configuration service of Sprinkler: server.py SPECIFICATION, a file of JSON."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from random import Random

from node.core import machine as m
from node.core.specification import NodeSpec
from node.systems import build_machine, codec_of
from node.tcp.adapter import Adapter, ApplicationOutputs
from node.tcp.process import new_event_loop


class Speaking(ApplicationOutputs):
    """Prints log lines and readiness to standard output."""

    def log(self, line):
        print(json.dumps({"event": line.event, **line.fields}), flush=True)

    def ready(self):
        print("ready", flush=True)


def failed(loop, context):
    loop.default_exception_handler(context)
    os._exit(1)  # otherwise it would continue with a failed task


async def serve(spec):
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(failed)
    machine = build_machine(spec, Random(spec.name))  # noqa: S311 - spreads retries, not secret
    adapter = Adapter(machine, codec_of(spec.system), spec.address, Speaking())
    loop.add_signal_handler(signal.SIGTERM, adapter.give, m.Finish())
    adapter.start()
    await adapter.finished.wait()
    await adapter.close()


given = json.loads(Path(sys.argv[1]).read_text())
with asyncio.Runner(loop_factory=new_event_loop) as runner:
    runner.run(serve(NodeSpec.from_json(given)))
