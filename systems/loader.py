"""Files of systems, found by name among those beside this module, or by path.

A system that needs templates or clients has a folder with a file system.yaml. In the folders that ship with
Cutset, other YAML files are systems that share the templates and clients.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast, get_args

from node.core.declaration import System
from node.core.program import Image, Program, Programs, ResourceLimits, Signal, Stopping
from systems.images.archives import ImageError
from systems.images.store import describe, located
from systems.model import RoleFile, SystemFile
from systems.names import FILE, is_path, shipped_systems
from systems.needs import outside_images
from topologies.document import Document, read_document, validated
from topologies.errors import InputError
from topologies.strict import suggestion

SIGNALS = {str(int(each)): each.name for each in signal.Signals}
TEMPLATE_BYTES_MAX = 256 * 1024


@dataclass(frozen=True, slots=True)
class ProgramSystem:
    """A system as its file declares it."""

    system: System
    programs: Programs
    description: str


def load_system(name_or_path: str, images: Mapping[str, str] | None = None) -> ProgramSystem:
    """Load a system by its name, file or folder. images: sources by role, in place of the file's.

    Raises InputError with file, line and field.
    """
    path = system_file(name_or_path)
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError:
        changed_ns = 0  # reading the file raises the error
    return _load(path, changed_ns, tuple((images or {}).items()))


def system_file(name_or_path: str) -> Path:
    """Return the path of a system's file. Raises InputError with the known names."""
    if is_path(name_or_path):
        path = Path(name_or_path).absolute()
        return path / FILE if path.is_dir() else path
    known = shipped_systems()
    if name_or_path in known:
        return known[name_or_path]
    problem = f"no system of this name{suggestion(name_or_path, known)}; a path works too"
    raise InputError(name_or_path, None, "", problem)


@cache
def _load(path: Path, changed_ns: int, images: tuple[tuple[str, str], ...]) -> ProgramSystem:
    """Read a file, cached. changed_ns: its modification time, so that a changed file is read again."""
    document = read_document(path)
    file = validated(SystemFile, document)
    roles = {
        name: _program(name, role, document, path.parent, dict(images).get(name))
        for name, role in file.roles.items()
    }
    needs = tuple(outside_images((need.need() for need in file.needs), roles))
    programs = Programs(document.file, str(path.parent.resolve()), needs, roles)
    return ProgramSystem(_system(file), programs, file.description)


def _program(name: str, role: RoleFile, document: Document, folder: Path, other: str | None) -> Program:
    """Return a role's program. other: the image in place of its own, in which `run` starts as without one."""
    image, stopping, user = None, Stopping(**dict(role.stop)), role.user
    if other or role.image:
        at = ("roles", name, "image")
        source = located(other or role.image, folder)
        try:
            found = describe(source)
        except ImageError as error:
            raise document.error(at, str(error)) from None
        if not (role.run or found.run):
            raise document.error(at, "names no program: give one with `run`")
        folder_there = "" if other and role.run else found.folder or "/"
        image = Image(source, found.digest, found.run, found.env, folder_there, found.version)
        user = role.user or ("" if role.is_client else found.user)  # clients write into the run
        if found.stop_signal and "signal" not in role.stop.model_fields_set:
            stopping = replace(stopping, signal=_signal(found.stop_signal, document, at))
    return Program(
        run=role.run,
        env=role.env,
        files={
            made: _template(document, ("roles", name, "files", made), folder, template)
            for made, template in role.files.items()
        },
        ready=role.readiness(),
        stop=stopping,
        limits=ResourceLimits(**dict(role.limits)),
        is_client=role.is_client,
        keeps_storage=role.keeps_storage,
        user=user,
        image=image,
    )


def _signal(given: str, document: Document, at: tuple[str, ...]) -> Signal:
    """Return the stop signal of an image, which may be a number."""
    name = SIGNALS.get(given, given)
    for known in get_args(Signal):
        if name.upper().removeprefix("SIG") == known:
            return cast("Signal", known)
    raise document.error(at, f"its stop signal {given} is not supported: give another with `stop`")


def _template(document: Document, at: tuple[str, ...], folder: Path, name: str) -> str:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise document.error(at, f"{name} is not in the folder of this file")
    try:
        if path.stat().st_size > TEMPLATE_BYTES_MAX:
            raise document.error(at, f"{name} is larger than {TEMPLATE_BYTES_MAX // 1024} KiB")
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise document.error(at, f"{name} cannot be read: {reason}") from None


def _system(file: SystemFile) -> System:
    """Return the system as other modules use it, without machines and codec."""
    parameters = make_dataclass(
        "Parameters",
        [(name, type(value), field(default=value)) for name, value in file.parameters.items()],
        frozen=True,
        slots=True,
    )
    return System(file.declared(), parameters, {})
