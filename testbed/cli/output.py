"""Output of commands: lines whose reader may close the pipe, and files that the user names."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """End the block without an error if the reader of standard output has closed it.

    The rest of the buffer is discarded, so that the interpreter reports no error at its end (Python's
    documentation, signal, "Note on SIGPIPE").
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def check_directory(path: Path) -> None:
    """Check that a file's directory exists: a mistyped one is not created silently. Raises InputError."""
    from topologies.errors import InputError

    if not path.parent.is_dir():
        made_by = shlex.join(["mkdir", "-p", str(path.parent)])
        raise InputError(str(path), None, "", f"its directory does not exist: create it with `{made_by}`")


def write_or_print(output: Path | None, text: str) -> None:
    """Write a text to a file and print its path, or write it to standard output. Raises InputError."""
    if output is None:
        click.echo(text, nl=False)
        return
    check_directory(output)
    write_text(output, text)
    click.echo(output)


def write_text(path: Path, text: str) -> None:
    """Write the file that the user named, which may be a link or a device. Raises InputError on failure."""
    with writing(path):
        path.write_text(text, encoding="utf-8")


def put_text(path: Path, text: str) -> None:
    """Write a file below a run, without following a link of that name; create its folder.

    Raises InputError on failure.
    """
    from experiments.files.whole_files import write_whole

    with writing(path):
        path.parent.mkdir(exist_ok=True)
        write_whole(path, text, sync=False)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise InputError if the block cannot write the path."""
    from topologies.errors import InputError

    try:
        yield
    except OSError as error:
        raise InputError(str(path), None, "", f"cannot be written: {error.strerror}") from None
