"""Both engines give the same rows to a question, or refuse it in the words of the user."""

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.errors import AnalysisError
from analysis.sql.dialect_functions import FUNCTIONS, INSTEAD
from analysis.sql.questions import read_cases
from analysis.sql.tables import TABLES
from tests.analysis.sql.dialect_questions import LISTED, T, aggregates, drawn, scalars, windows
from tests.analysis.sql.test_questions import WORKED, on_spark

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()
COLUMNS = 60
"""Expressions that one query computes, since a query of Spark costs far more than a column."""
TOGETHER = [
    each[begin : begin + COLUMNS]
    for each in (scalars(), aggregates(), windows())
    for begin in range(0, len(each), COLUMNS)
]
DRAWN = 1
"""The seed of drawn expressions."""
DIGITS = 12
"""Digits in which numbers of type DOUBLE agree: engines add in different orders."""


@pytest.fixture(scope="module")
def ask_spark(spark, runs):
    questions = on_spark(spark, read_cases(runs[:1]))
    return lambda question: questions.ask(question).table()


def value(each):
    """Return a value in a form that compares: DOUBLE in `DIGITS`, NaN equal to itself."""
    if isinstance(each, float):
        return "NaN" if math.isnan(each) else float(f"{each:.{DIGITS}g}")
    if isinstance(each, list):
        return [value(one) for one in each]
    return each


def kinds(table) -> list[str]:
    """Return the types of columns; engines name the items of lists their way."""
    return [
        re.sub(r"list<\w+: |list<", "list<", str(field.type)).replace(" not null", "")
        for field in table.schema
    ]


def column(table, number: int, *, in_order: bool = False) -> list[str]:
    found = [repr(value(each)) for each in table.column(number).to_pylist()]
    return found if in_order else sorted(found)


def rows(table, *, in_order: bool) -> list[str]:
    found = [
        repr([value(each) for each in row])
        for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
    ]
    return found if in_order else sorted(found)


@pytest.mark.spark
@pytest.mark.parametrize("expressions", TOGETHER, ids=lambda each: each[0])
def test_both_engines_compute_the_same(ask, ask_spark, expressions: Sequence[str]):
    question = f"{T} SELECT i AS key, {', '.join(expressions)} FROM t"
    question = question.replace("i AS key", "max(i) AS key") if expressions[0] in aggregates() else question
    here, there = ask(question), ask_spark(question)
    assert here.column_names == there.column_names
    differ = {
        expression: (kinds(here)[number], column(here, number), kinds(there)[number], column(there, number))
        for number, expression in enumerate(expressions, 1)
        if column(here, number) != column(there, number) or kinds(here)[number] != kinds(there)[number]
    }
    assert differ == {}


ASKED = {
    "about values": [T + each for each in LISTED["questions"]],
    "about runs": LISTED["questions about runs"],
    "of the page": WORKED,
    "whole tables": [f"SELECT * FROM {table}" for table in TABLES],
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", ASKED)
def test_both_engines_give_the_same_rows(ask, ask_spark, kind: str):
    differ = {}
    is_of_dialect = kind in ("about values", "about runs")
    for question in ASKED[kind]:
        in_order = is_of_dialect and re.search(r"ORDER BY [^()]*$", question) is not None
        here, there = (
            (table.column_names, kinds(table) if is_of_dialect else [], rows(table, in_order=in_order))
            for table in (ask(question), ask_spark(question))
        )
        if here != there:
            differ[question.removeprefix(T)] = here, there
    assert differ == {}


@pytest.mark.spark
def test_both_engines_compute_expressions_that_are_drawn_by_chance(ask, ask_spark):
    chance = random.Random(DRAWN)
    expressions = [drawn(chance, chance.choice("nsb"), 2) for _ in range(COLUMNS)]
    question = f"{T} SELECT {', '.join(f'{each} AS c{n}' for n, each in enumerate(expressions))} FROM t"
    here, there = ask(question), ask_spark(question)
    assert kinds(here) == kinds(there)
    for number, expression in enumerate(expressions):
        assert column(here, number) == column(there, number), expression


@pytest.mark.spark
def test_spark_says_in_one_line_what_failed(ask_spark, capfd):
    with pytest.raises(AnalysisError, match=r"^\[ARITHMETIC_OVERFLOW\]"):
        ask_spark("SELECT sum(t_ns * 4) FROM packets")
    with pytest.raises(AnalysisError, match=r"^\[SCALAR_SUBQUERY_TOO_MANY_ROWS\]"):
        ask_spark("SELECT (SELECT client FROM deliveries)")
    assert "SQLQueryContextLogger" not in capfd.readouterr().err


def test_the_page_names_every_function():
    assert set(re.findall(r"`(\w+)`", PAGE.partition("## Functions")[2].partition("\n## ")[0])) == set(
        FUNCTIONS
    )


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "SELECT client,\n       first(lost)\nFROM deliveries",
            "line 2: `first(lost)` takes the value of any row",
        ),
        ("SELECT *\nFROM packets\nLIMIT 5", "line 3: `LIMIT 5` takes any rows: put ORDER BY ALL before it"),
        (
            "SELECT client\nFROM deliveries\nWHERE lost = 'no'",
            "line 3: `lost = 'no'` mixes BIGINT and STRING",
        ),
        ("SELECT\n  strftime(t_ns)\nFROM packets", "line 2: `strftime(t_ns)` is not in the dialect"),
        ("SELECT lost\nFROM deliveries\nWHERE nothing > 1", "line 3: Column 'nothing'"),
        ("SELECT lost FROM\nWHERE", "line 2: at `WHERE`"),
        ("SELECT client FROM deliveries\nLATERAL VIEW explode(x) v AS y", "LATERAL is not in the dialect"),
        ("SELECT client, sum(lost)\nFROM deliveries", 'line 1: Binder Error: column "client" must appear'),
        (
            "SELECT stream,\n lost / (lost - lost) FROM deliveries",
            "line 2: `lost / (lost - lost)` divides by zero",
        ),
        ("SELECT 1\n % 0", "divides by zero"),
        (
            "SELECT CAST(client AS INT)\nFROM deliveries",
            "line 1: `CAST(client AS INT)` found a text that is no INT",
        ),
        *(line.split(" => ") for line in LISTED["refused"]),
    ],
)
def test_refusals_name_the_words_of_the_question_and_what_to_write(ask, question, said):
    with pytest.raises(AnalysisError) as raised:
        ask(question)
    message = str(raised.value)
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_functions_with_another_answer_each_time_or_engine_are_refused(ask, name):
    with pytest.raises(AnalysisError, match=re.escape(INSTEAD[name])):
        ask(f"SELECT {name}(lost) FROM deliveries")


@pytest.mark.parametrize("name", [name for name, each in FUNCTIONS.items() if not each.takes.endswith("*")])
def test_functions_refuse_arguments_of_another_number(ask, name):
    with pytest.raises(AnalysisError, match=r"takes|number of provided arguments"):
        ask(
            f"SELECT {name}({', '.join('lost' for _ in range(9)) if name != 'count' else ''}) FROM deliveries"
        )


def test_a_description_has_the_types_of_the_columns(ask):
    found = ask("DESCRIBE captures").to_pylist()
    assert found[0] == {"col_name": "run", "data_type": "string"}
    assert {"col_name": "unused", "data_type": "array<struct<what: string, count: bigint>>"} in found


def test_columns_are_named_as_they_were_asked(ask):
    found = ask("SELECT Client, count(*), max(lost) AS Most, lost+1 FROM deliveries GROUP BY ALL")
    assert found.column_names == ["Client", "count(*)", "Most", "lost + 1"]
