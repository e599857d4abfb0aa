"""What a command writes: lines that somebody may stop reading, and files that it is asked for."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """End the block without an error when standard output's reader has gone.

    What is still in the buffer goes nowhere, so that the interpreter does not complain at its end either
    (Python's documentation, signal, "Note on SIGPIPE").
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def check_directory(path: Path) -> None:
    """Check that a file's directory exists: a mistyped one is not made silently. Raises InputError."""
    from topologies.errors import InputError

    if not path.parent.is_dir():
        made_by = shlex.join(["mkdir", "-p", str(path.parent)])
        raise InputError(str(path), None, "", f"its directory is not there: `{made_by}` makes it")


def give(output: Path | None, text: str) -> None:
    """Write a text to a file, and print its path; or to standard output. Raises InputError."""
    if output is None:
        click.echo(text, nl=False)
        return
    check_directory(output)
    write_text(output, text)
    click.echo(output)


def write_text(path: Path, text: str) -> None:
    """Write the file that somebody named, which may be a link or a device. Raises InputError if that cannot
    be done.
    """
    with _writing(path):
        path.write_text(text, encoding="utf-8")


def put_text(path: Path, text: str) -> None:
    """Put the file in its place below a run, where a link of that name is not followed; its folder is made.

    Raises InputError if that cannot be done.
    """
    from experiments.files.whole_files import write_whole

    with _writing(path):
        path.parent.mkdir(exist_ok=True)
        write_whole(path, text, sync=False)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    from topologies.errors import InputError

    try:
        yield
    except OSError as error:
        raise InputError(str(path), None, "", f"cannot be written: {error.strerror}") from None
