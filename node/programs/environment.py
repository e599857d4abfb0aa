"""Environment of a program at its start: folder, files, storage, variables, and its client's parameters."""

import json
import os
import pwd
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from node.core.specification import NodeSpec
from node.programs.host_view import hosts_text
from node.programs.image_view import ImageView
from node.programs.launch import Launch
from node.tcp.child import open_append

CLIENT_VARIABLE = "CUTSET_CLIENT"
"""Variable with the file that contains a client's parameters."""
CLIENT_FILE = "client.json"
HOSTS_FILE = "hosts"
KEY_LOG_VARIABLE = "SSLKEYLOGFILE"
"""Variable by which Python's ssl, curl, Firefox and many others know where to log the keys of TLS
connections.
"""
CLIENT_VARIABLES = (CLIENT_VARIABLE, "PYTHONPATH", "PYTHONUNBUFFERED")
NOT_HANDED_ON = ("CUTSET_", "PYTHON", "VIRTUAL_ENV")
"""Prefixes of variables that programs do not inherit."""


def prepare(spec: NodeSpec, launch: Launch) -> tuple[Path, Path]:
    """Write a program's files, and begin a session in its record of deliveries.

    Returns the files for its /etc/hosts and /var/lib. Raises OSError, and KeyError for an unknown user.
    """
    folder, program = launch.folder, launch.program
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in program.files.items():
        path = file_in(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if launch.key_log is not None:
        _begin_key_log(launch.key_log, "" if program.image else program.user)
    storage = Path(spec.storage) if spec.storage is not None else folder / "storage"
    if not program.keeps_storage:
        shutil.rmtree(storage, ignore_errors=True)  # it may not exist
    storage.mkdir(parents=True, exist_ok=True)
    hosts = folder / HOSTS_FILE
    hosts.write_text(hosts_text(spec.members))
    with open_append(spec.deliveries, header=encode_file_header()) as deliveries:
        begun = DeliveryRecord(0, 0, spec.start, time.time_ns(), 0, 0, RecordKind.SESSION, 0)
        deliveries.write(encode_record(begun))
    return hosts, storage


def file_in(folder: Path, name: str) -> Path:
    """Return the place of a program's file: below its folder, also if it has an absolute path in an image."""
    return folder / name.lstrip("/")


def image_view(spec: NodeSpec, launch: Launch, hosts: Path, storage: Path) -> ImageView | None:
    """Return the view of a program in an image; None if it has no image."""
    program = launch.program
    if program.image is None or launch.image_root is None:
        return None
    is_client = program.is_client and spec.deliveries is not None
    read = [launch.system]
    if is_client:
        modules = [Path(each) for each in launch.python_path.split(os.pathsep)]
        linked = {each.resolve().parent for each in modules[0].glob("*/*.py")}  # it shares some with nodes
        read += [*modules, *sorted(linked)]
    return ImageView(
        replace(program.image, folder=program.image.folder or str(launch.folder)),
        launch.image_root,
        storage,
        hosts,
        [launch.folder, *([Path(spec.deliveries or "").parent] if is_client else ())],
        [each for each in read if each.is_dir()],
        {name: file_in(launch.folder, name) for name in program.files if name.startswith("/")},
        launch.key_log,
        launch.keeps_owners,
    )


def environment(spec: NodeSpec, launch: Launch, channel: str) -> dict[str, str]:
    """Return the program's environment: the machine's without Cutset's variables, and its role's."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(NOT_HANDED_ON)}
    own = {"PYTHONPATH": launch.python_path, "PYTHONUNBUFFERED": "1", "HOME": str(launch.folder)}
    if launch.key_log is not None:
        own[KEY_LOG_VARIABLE] = str(launch.key_log)
    if launch.program.is_client:
        client_file = launch.folder / CLIENT_FILE
        client_file.write_text(json.dumps(client_parameters(spec, launch, channel)))
        own[CLIENT_VARIABLE] = str(client_file)
    return {**given, **own, **launch.program.env}


def image_environment(env: Mapping[str, str], launch: Launch) -> dict[str, str]:
    """Return the variables that a program in an image gets: none of the machine's."""
    own = (KEY_LOG_VARIABLE, *(CLIENT_VARIABLES if launch.program.is_client else ()))
    return {**{name: env[name] for name in own if name in env}, **launch.program.env}


def _begin_key_log(path: Path, user: str) -> None:
    """Create an empty key log that only the program's user can read. The file of an earlier process
    generation is renamed, because some programs do not append.
    """
    if path.exists():
        earlier = sum(1 for _ in path.parent.glob(f"{path.stem}*{path.suffix}"))
        path.rename(path.with_name(f"{path.stem}-{earlier}{path.suffix}"))
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    if user and os.geteuid() == 0:
        os.chown(path, pwd.getpwnam(user).pw_uid, -1)


def client_parameters(spec: NodeSpec, launch: Launch, channel: str) -> Mapping[str, object]:
    """Return the parameters of `cutset_client`: see `cutset_client.session`."""
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
        "true_epoch_ns": None if spec.clock is None else time.time_ns() - time.monotonic_ns(),
    }
