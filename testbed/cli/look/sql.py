"""`cutset sql`: queries the tables of runs and captures in SQL."""

import io
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from testbed.cli.options import NEW_FILE, SECONDS, once, run_arguments, system_option

if TYPE_CHECKING:
    from analysis.sql.answers import OutputFormat
    from analysis.sql.questions import QueryResult
    from experiments.records.rundir import RunDirectory

FORMS: Final = ("table", "csv", "json", "parquet")


@click.command(
    name="sql",
    context_settings={"ignore_unknown_options": True},  # a query may begin with `-- a comment`
)
@run_arguments("RUN... [QUESTION]")
@once(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the question from this file.",
)
@once("--from", "from_s", type=SECONDS, help="Packets of captures from this time after the first one.")
@once("--to", "to_s", type=SECONDS, help="Packets of captures before this time after the first one.")
@system_option
@once("--format", "form", type=click.Choice(FORMS), help="The format of rows.  [default: table]")
@once("--output", type=NEW_FILE, help="Write the rows to this file.")
def command(
    run_names: tuple[str, ...],
    file: Path | None,
    form: str | None,
    output: Path | None,
    *,
    from_s: Decimal | None,
    to_s: Decimal | None,
    system: str | None,
) -> int:
    """Query the tables of runs, or of any captures, in SQL.

    A sweep stands for all of its runs. Captures (`site-a.pcap`, a folder, a pattern, a URL, `-`) have the
    tables packets, connections, silences, throughput, captures, and of several taps transfers and clocks
    (docs/captures.md); --from and --to read only a part of them. The last argument is a question if it has
    several words, as `TABLE runs`; several questions are separated by `;`. Without a question,
    questions are read from standard input. `SHOW TABLES` lists the tables, `cutset schema tables` also
    their columns; the first column of each table is the run's name. `runs` has every setting as a column.
    The language is DuckDB's; its functions are joined by ip(hi, lo), since_start(t_ns) and
    during(fault, t_ns).

    Example: cutset sql latest "SELECT origin, max(p99_ms) FROM latency GROUP BY origin"

    Exit codes: 0 answered, 1 the question is wrong, 2 no such run, or not analysed, 3 another command makes
    or analyses one.
    """
    from analysis.arrow_alone import keep_pandas_out

    keep_pandas_out()
    from analysis.sql.answers import OutputFormat
    from analysis.sql.cases import read_cases
    from analysis.sql.questions import open_questions
    from testbed.campaign.in_use import reading
    from testbed.cli.captures import opened_captures
    from testbed.cli.named_run import named_cases

    names, question = _divided(run_names, file)
    if form == OutputFormat.PARQUET and output is None:
        raise click.UsageError("Parquet cannot be shown on a terminal: add --output FILE")
    of_runs, of_captures = named_cases(names)
    if not of_captures and (from_s, to_s, system) != (None, None, None):
        raise click.UsageError("--from, --to and --system are for captures: runs know their system")
    runs = _runs(of_runs)
    wanted = OutputFormat(form or OutputFormat.TABLE)
    with (
        reading(*(run.path for run in runs)),
        opened_captures(of_captures, from_s, to_s, system=system) as captures,
        open_questions([*read_cases(runs), *captures]) as asked,
    ):
        if question is None and sys.stdin.isatty():
            click.echo("type questions that end with ;, then Ctrl-D", err=True)
        questions = asked.divided(sys.stdin.read() if question is None else question)
        if not questions:
            raise click.UsageError("the question is empty")
        if output is not None and len(questions) != 1:
            raise click.UsageError(f"--output takes one question, but there are {len(questions)}")
        for each in questions:
            _give(asked.ask(each), wanted, output)
        return 0


def _divided(arguments: Sequence[str], file: Path | None) -> tuple[Sequence[str], str | None]:
    """Return the names of runs, and the question if there is one."""
    from testbed.cli.named_run import STANDARD_INPUT

    *names, last = arguments
    is_question = _is_question(last)
    for name in names if is_question else arguments:
        if name.partition("=")[0] in {"--spark", "--master"}:
            problem = "DuckDB answers all questions; for Spark open the Parquet files in a run's analysis/"
            raise click.UsageError(f"{name}: {problem}, or analysis.open(RUN).spark(TABLE) in Python")
        if name.startswith("-") and name != STANDARD_INPUT:
            raise click.NoSuchOption(name.partition("=")[0])
    if is_question and file is not None:
        raise click.UsageError("--file gives the question: leave out the other one")
    if is_question and not names:
        raise click.UsageError("which run? As in: cutset sql latest 'SELECT ...'")
    if file is not None:
        return arguments, _read(file)
    return (names, last) if is_question else (arguments, None)


_SIGNS = frozenset(";()'\"")


def _is_question(argument: str) -> bool:
    """Return whether an argument is SQL rather than a run's name: it is no path, and has several words, none,
    or characters that names lack.
    """
    if len(argument.split()) == 1 and ("://" in argument or not _SIGNS & set(argument)):
        return False
    try:
        return not argument or not Path(argument).exists()
    except OSError:  # longer than a path can be
        return True


def _read(file: Path) -> str:
    from experiments.records.json_files import read_text
    from topologies.errors import InputError

    try:
        return read_text(file).decode()
    except UnicodeDecodeError:
        raise InputError(str(file), None, "", "is not UTF-8 text") from None


def _runs(names: Sequence[str]) -> "list[RunDirectory]":
    """Return the runs of these names; for sweeps, all analysed runs. Raises InputError."""
    from experiments.campaigns.sweepdir import SweepDirectory
    from testbed.cli.named_run import named
    from topologies.errors import InputError

    found: list[RunDirectory] = []
    for name in names:
        asked = named(name)
        if not isinstance(asked, SweepDirectory):
            found.append(asked)
            continue
        made = [asked.run_of(run) for run in asked.read().made]
        analysed = [run for run in made if run.summary_json.is_file()]
        if not analysed:
            raise InputError(str(asked.path), None, "", "has no analysed run yet")
        if len(analysed) < len(made):
            click.echo(f"{asked.path}: {len(made) - len(analysed)} of its runs are not analysed", err=True)
        found += analysed
    return found


def _give(answer: "QueryResult", form: "OutputFormat", output: Path | None) -> None:
    from analysis.sql.answers import lines, write
    from experiments.files.sanitize import printable_lines
    from experiments.files.whole_files import replacing
    from testbed.cli.output import check_directory, reader_may_leave

    if output is not None:
        check_directory(output)
        with replacing(output, sync=False) as stream:
            write(answer, form, stream)
        click.echo(output)
        return
    with reader_may_leave():
        if form == "table":
            for line in lines(answer):
                click.echo(line)
        elif sys.stdout.isatty():
            with io.BytesIO() as rows:
                write(answer, form, rows)
                click.echo(printable_lines(rows.getvalue().decode(errors="replace")), nl=False)
        else:
            write(answer, form, sys.stdout.buffer)
            sys.stdout.buffer.flush()
