"""What a program finds when it starts: folder, files, storage, environment, and what its client is told."""

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from node.core.specification import NodeSpec
from node.programs.host_view import hosts_text
from node.programs.launch import Launch
from node.tcp.child import open_append

CLIENT_VARIABLE = "CUTSET_CLIENT"
"""Names the file that tells a client what it is."""
CLIENT_FILE = "client.json"
HOSTS_FILE = "hosts"
NOT_HANDED_ON = ("CUTSET_", "PYTHON", "VIRTUAL_ENV")
"""Beginnings of variables that are Cutset's own business."""


def prepare(spec: NodeSpec, launch: Launch) -> tuple[Path, Path]:
    """Write a program's files, and begin a session in its record of deliveries.

    Returns what is to be its /etc/hosts and its /var/lib. Raises OSError.
    """
    folder, program = launch.folder, launch.program
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in program.files.items():
        (folder / name).write_text(text)
    storage = Path(spec.storage) if spec.storage is not None else folder / "storage"
    if not program.keeps_storage:
        shutil.rmtree(storage, ignore_errors=True)  # there may be none
    storage.mkdir(parents=True, exist_ok=True)
    hosts = folder / HOSTS_FILE
    hosts.write_text(hosts_text(spec.members))
    with open_append(spec.deliveries, header=encode_file_header()) as deliveries:
        begun = DeliveryRecord(0, 0, 0, time.time_ns(), 0, 0, RecordKind.SESSION, 0)
        deliveries.write(encode_record(begun))
    return hosts, storage


def environment(spec: NodeSpec, launch: Launch, channel: str) -> dict[str, str]:
    """The program's environment: the machine's, less what is Cutset's own, and what its role says."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(NOT_HANDED_ON)}
    own = {"PYTHONPATH": launch.python_path, "PYTHONUNBUFFERED": "1", "HOME": str(launch.folder)}
    if launch.program.is_client:
        told = launch.folder / CLIENT_FILE
        told.write_text(json.dumps(client_words(spec, launch, channel)))
        own[CLIENT_VARIABLE] = str(told)
    return {**given, **own, **launch.program.env}


def client_words(spec: NodeSpec, launch: Launch, channel: str) -> Mapping[str, object]:
    """What `cutset_client` is told: see `cutset_client.session`."""
    return {
        "name": spec.name,
        "region": spec.region,
        "role": spec.role,
        "index": spec.index,
        "start": spec.start,
        "homes": spec.homes,
        "publishes": spec.published_by(spec) if "publisher" in launch.traits else (),
        "subscribes": "subscriber" in launch.traits,
        "workload": dict(spec.workload),
        "subscriptions": [asdict(each) for each in spec.subscriptions],
        "published": launch.published,
        "since": launch.since,
        "deliveries": spec.deliveries,
        "numbers": str(launch.folder / "numbers"),
        "channel": channel,
    }
