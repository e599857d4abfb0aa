"""Programs under a launcher, with their own view of the machine but without a network namespace."""

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from node.core.program import Program, Stopping
from node.core.specification import Member, NodeSpec
from testbed.programs import CLIENT

WITHIN = [
    "unshare",
    *([] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]),
    "--mount",
]
"""Prefixes with which a launcher can give its programs separate views."""


def program(*run: str, **given: Any) -> Program:
    return Program(tuple(run), **given)


def shell(script: str, **given: Any) -> Program:
    return program("sh", "-c", script, **given)


def spec(folder: Path, minded: Program, name: str = "r0/broker-0", **given: Any) -> NodeSpec:
    """Return the specification of a process on this machine's loopback."""
    region, _, rest = name.partition("/")
    role, _, index = rest.rpartition("-")
    host = name.replace("/", "-")
    others = (Member("r0/broker-0", "r0-broker-0", "r0", "broker", 0, "127.0.0.1"),)
    launch = {
        "program": asdict(minded),
        "folder": str(folder / "programs" / host),
        "python_path": str(CLIENT),
        "published": given.pop("published", "sent-then-acknowledged"),
        "since": given.pop("since", "beginning"),
        "traits": given.pop("traits", ("publisher", "subscriber")),
        "key_log": given.pop("key_log", None),
        "system": str(folder),
        "image_root": given.pop("image_root", None),
        "keeps_owners": os.geteuid() == 0,
    }
    made = NodeSpec(name, host, region, role, int(index), 1, "foreign", others, "127.0.0.1", program=launch)
    return replace(
        made,
        log=str(folder / f"{host}.jsonl"),
        deliveries=str(folder / f"{host}.deliveries"),
        storage=str(folder / "storage" / host),
        **given,
    )


AT_ONCE = Stopping(grace_us=100_000)
