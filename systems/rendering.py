"""Rendering of a role's templates to the arguments, environment and files of one process.

Templates are jinja2's, and strict: an undefined name is an error. They can use

    name host region role index address    of the process itself ("r2/broker-0", "r2-broker-0", …)
    peers(role, region)                    the other processes, each with these fields; by default all
    regions                                the names of all regions
    parameters                             the system's
    folder                                 the process's own, its working directory with its files
    system                                 the folder of the system's file
    python                                 the interpreter that Cutset runs with

Pure: `node.programs` reads and writes files.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from node.core.program import Program, Programs
from topologies.errors import InputError

RENDERED_BYTES_MAX = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateContext:
    """The values for templates of one run that are not specific to a process.

    members: all processes, as other processes know them. python: the interpreter.
    """

    members: Sequence[Mapping[str, Any]]
    regions: Sequence[str]
    parameters: Mapping[str, Any]
    python: str


def program_of(
    programs: Programs, member: Mapping[str, Any], around: TemplateContext, folder: str
) -> Program:
    """Return the program of a process with all templates rendered. folder: the process's own.

    Raises InputError with the field of the system's file.
    """
    program = programs.roles[member["role"]]
    names = {
        **member,
        "peers": _peers(member, around.members),
        "regions": around.regions,
        "parameters": around.parameters,
        "folder": folder,
        "system": programs.folder,
        "python": around.python,
    }

    def text(template: str, *at: object) -> str:
        field = ".".join(map(str, ("roles", member["role"], *at)))
        return _rendered(template, names, programs.file, field, member["name"])

    ready, image = program.ready, program.image
    run = tuple(text(each, "run", n) for n, each in enumerate(program.run))
    env = {name: text(each, "env", name) for name, each in program.env.items()}
    return dataclasses.replace(
        program,
        run=run if run or image is None else image.run,
        env=env if image is None else {**image.env, **env},
        files={name: text(each, "files", name) for name, each in program.files.items()},
        ready=dataclasses.replace(
            ready,
            port=text(ready.port, "ready", "port"),
            http=text(ready.http, "ready", "http"),
            command=tuple(text(each, "ready", "command", n) for n, each in enumerate(ready.command)),
        ),
    )


def _peers(own: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> Callable[..., Any]:
    others = [each for each in members if each["name"] != own["name"]]

    def peers(role: str | None = None, region: str | None = None) -> list[Mapping[str, Any]]:
        return [
            each
            for each in others
            if (role is None or each["role"] == role) and (region is None or each["region"] == region)
        ]

    return peers


def _rendered(template: str, names: Mapping[str, Any], file: str, field: str, process: str) -> str:
    if "{" not in template:
        return template
    import jinja2.sandbox  # noqa: PLC0415 - only rendering needs it

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    try:
        text = environment.from_string(template).render(names)
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise InputError(file, None, field, f"for {process}: {error}") from None
    if len(text) > RENDERED_BYTES_MAX:
        raise InputError(file, None, field, f"for {process}: more than {RENDERED_BYTES_MAX} characters")
    return text
