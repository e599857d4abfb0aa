"""The prompt of `cutset sql`: questions of several lines, ended by `;`, with completion and history."""

import contextlib
import os
import re
import readline
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from analysis.errors import AnalysisError
from analysis.sql.questions import columns_of
from analysis.sql.tables import TABLES

HISTORY: Final = Path("cutset", "sql-history")
HISTORY_LINES: Final = 1_000
_PROMPT, _MORE = "cutset> ", "   ...> "
_WORDS: Final = (
    *("select", "from", "where", "group by", "order by", "limit", "join", "using", "with", "as", "and", "or"),
    *("not", "in", "like", "between", "is null", "describe", "count(*)", "sum(", "avg(", "min(", "max("),
    *("ip(", "since_start(", "during("),
)
_HELP: Final = """\
A question ends with ; and may have several lines. `tables` shows the tables, `DESCRIBE latency;` its columns.
Tab completes, Ctrl-C drops the question, Ctrl-D or `quit` leaves."""


class SqlPrompt:
    """Reads questions from a terminal and prints the answers, until the user leaves."""

    def __init__(self, answer: Callable[[str], None]) -> None:
        """Create a prompt. answer: prints the answers to questions; raises AnalysisError if one is wrong."""
        self._answer = answer

    def loop(self) -> None:
        """Read and answer questions until Ctrl-D or `quit`."""
        click.echo("Questions end with ; - `help` shows more.")
        with _completing(), _remembering():
            while (question := self._read()) is not None:
                self._execute(question)

    def _read(self) -> str | None:
        """Return the next question or command; None if the user left."""
        lines: list[str] = []
        while True:
            try:
                lines.append(input(_MORE if lines else _PROMPT))
            except EOFError:
                click.echo()
                return None
            except KeyboardInterrupt:
                click.echo()
                lines.clear()
                continue
            text = "\n".join(lines).strip()
            if not text:
                lines.clear()
            elif text in {"quit", "exit"}:
                return None
            elif text in {"help", "tables"} or text.endswith(";"):
                return text

    def _execute(self, text: str) -> None:
        if text == "help":
            click.echo(_HELP)
            return
        if text == "tables":
            width = max(map(len, TABLES))
            for name, table in TABLES.items():
                click.echo(f"{name:<{width}}  {table.row}")
            return
        try:
            self._answer(text)
        except AnalysisError as error:
            click.echo(error)
        except KeyboardInterrupt:
            click.echo("interrupted")


def completions(before: str, word: str) -> list[str]:
    """Return the completions of a word. before: the line before it."""
    if re.search(r"\b(from|join|describe)\s+$", before, re.IGNORECASE):
        known = list(TABLES)
    else:
        named = [name for name in re.findall(r"\w+", before) if name in TABLES]
        columns = [column for name in named or TABLES for column in columns_of(name)]
        known = [*_WORDS, *TABLES, *columns]
    return sorted({each for each in known if each.lower().startswith(word.lower())})


@contextlib.contextmanager
def _completing() -> Iterator[None]:
    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(_complete)
    readline.set_completer_delims(" \t\n,()=<>;")
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)


def _complete(word: str, number: int) -> str | None:
    line = readline.get_line_buffer()
    found = completions(line[: readline.get_begidx()], word)
    return found[number] if number < len(found) else None


@contextlib.contextmanager
def _remembering() -> Iterator[None]:
    """Load the history of earlier prompts and save it, if its file can be read and written."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    path = base / HISTORY
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        readline.set_history_length(HISTORY_LINES)
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            readline.write_history_file(path)
            path.chmod(0o600)
