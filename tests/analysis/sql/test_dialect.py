"""Both engines give the same rows to a question, or refuse it in the words of the user."""

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.errors import AnalysisError
from analysis.sql.dialect_functions import FUNCTIONS, INSTEAD
from analysis.sql.duckdb_engine import duckdb_questions
from analysis.sql.questions import read_cases
from tests.analysis.inspect.packets.small_run import around_the_cut
from tests.analysis.sql.dialect_questions import ABOUT_RUNS, QUESTIONS, T, aggregates, drawn, scalars, windows
from tests.analysis.sql.test_questions import on_spark

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


ENGINES_DIFFER = {
    "SELECT lost IN (SELECT stream FROM streams) FROM deliveries": "write EXISTS",
    "SELECT 1 FROM deliveries WHERE stray = 1 OR lost NOT IN (SELECT stream FROM streams)": "write EXISTS",
    "SELECT 1 FROM deliveries WHERE NOT (lost IN (SELECT 1) AND stray = 1)": "write EXISTS",
    "SELECT 1 FROM deliveries WHERE (lost, stray) IN (SELECT 1, 2)": "write EXISTS",
    "SELECT lag(lost, 1, 1.5) OVER (ORDER BY client) FROM deliveries": "`1.5` has to be an integer",
    "SELECT explode(publishers), explode(publishers) FROM streams": "stands alone",
    "SELECT upper(explode(publishers)) FROM streams": "stands alone",
    "SELECT explode(publishers) AS p, count(*) FROM streams GROUP BY p": "stands alone",
    "SELECT 1 FROM deliveries WHERE lost": "`lost` takes a BOOLEAN",
    "SELECT CASE WHEN lost THEN 1 END FROM deliveries": "takes a BOOLEAN",
    "SELECT CASE client WHEN 1 THEN 2 END FROM deliveries": "mixes INT and STRING",
    "SELECT count(DISTINCT lost) OVER () FROM deliveries": "DISTINCT is not in the dialect with OVER",
    "SELECT stddev(DISTINCT lost) FROM deliveries": "SELECT DISTINCT in a subquery",
    "SELECT 1 FROM deliveries GROUP BY ()": "`GROUP BY ()` is not in the dialect",
    'SELECT client FROM deliveries ORDER BY "client"': "names are in backquotes",
    'SELECT lost AS "n" FROM deliveries': "AS `n`",
    "SELECT lost AS n FROM deliveries WHERE n > 0": "`n` is a name of SELECT",
    "SELECT lost AS n, rank() OVER (ORDER BY n) FROM deliveries": "`n` is a name of SELECT",
    "SELECT client, max(lost) AS lost FROM deliveries GROUP BY 1 ORDER BY max(lost)": "order by lost",
    "SELECT DISTINCT client FROM deliveries ORDER BY lost": "is not in SELECT DISTINCT",
    "SELECT client FROM deliveries ORDER BY rank() OVER (ORDER BY lost)": "name the window function",
    "SELECT client FROM deliveries ORDER BY client UNION ALL SELECT 'x'": "in parentheses",
    "SELECT client FROM deliveries GROUP BY 1 QUALIFY rank() OVER (ORDER BY max(lost)) = 1": "within QUALIFY",
    "SELECT hops.region FROM messages": "is a part of an array",
    "SELECT h.* FROM (SELECT explode(hops) AS h FROM messages)": "name the parts",
    "SELECT sum(lost) OVER (ORDER BY client RANGE 1 PRECEDING) FROM deliveries": "ROWS",
    "SELECT 1 FROM deliveries WHERE client RLIKE 'a*+'": "differently",
    "SELECT 1 FROM deliveries WHERE 0 < lost < 9": "compares a comparison",
    "SELECT 1 FROM hosts h RIGHT ANTI JOIN runs r USING (run)": "write LEFT ANTI JOIN",
    "SELECT direction FROM throughput JOIN links ON link = name": "write throughput.direction",
    "SELECT client FROM deliveries WHERE client = 'x": "does not end",
    "SELECT rank() OVER (ORDER BY 1 / (lost - lost)) FROM deliveries": "`1 / (lost - lost)` divides",
}
"""Questions that an engine answered its own way, or in words of its own, and what is said now."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return read_cases([around_the_cut().write(tmp_path_factory.mktemp("runs") / "a-run")])


@pytest.fixture(scope="module")
def ask(cases):
    with duckdb_questions(cases) as questions:
        yield lambda question: questions.ask(question).table()


@pytest.fixture(scope="module")
def ask_spark(spark, cases):
    questions = on_spark(spark, cases)
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


def test_there_are_three_hundred_questions_at_least():
    assert sum(map(len, TOGETHER)) + len(QUESTIONS) + len(ABOUT_RUNS) >= 300


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


@pytest.mark.spark
def test_both_engines_give_the_same_rows(ask, ask_spark):
    differ = {}
    for question in [*(T + each for each in QUESTIONS), *ABOUT_RUNS]:
        here, there = ask(question), ask_spark(question)
        in_order = re.search(r"ORDER BY [^()]*$", question) is not None
        one, other = rows(here, in_order=in_order), rows(there, in_order=in_order)
        if (here.column_names, kinds(here), one) != (there.column_names, kinds(there), other):
            differ[question.removeprefix(T)] = (here.schema, one, there.schema, other)
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


def test_the_page_names_every_function_and_every_refused_one():
    assert set(re.findall(r"`(\w+)`", PAGE.partition("## Functions")[2].partition("\n## ")[0])) == set(
        FUNCTIONS
    )
    refused = re.findall(r"`(\w+)`", PAGE.partition("## Refused")[2].partition("\n## ")[0])
    assert set(INSTEAD) <= set(refused)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "SELECT client,\n       first(lost)\nFROM deliveries",
            "line 2: `first(lost)` takes the value of any row",
        ),
        ("SELECT *\nFROM packets\nLIMIT 5", "line 3: `LIMIT 5` takes any rows: put ORDER BY ALL before it"),
        ("SELECT lag(lost) OVER (PARTITION BY run) FROM deliveries", "line 1: `lag(lost) OVER"),
        (
            "SELECT client\nFROM deliveries\nWHERE lost = 'no'",
            "line 3: `lost = 'no'` mixes BIGINT and STRING",
        ),
        (
            "SELECT CAST(p99_ms AS STRING) FROM latency",
            "line 1: `CAST(p99_ms AS STRING)` is not in the dialect",
        ),
        (
            "SELECT CAST(lost AS DECIMAL(9, 2)) FROM deliveries",
            "line 1: `CAST(lost AS DECIMAL(9, 2))` is not",
        ),
        ("SELECT\n  strftime(t_ns)\nFROM packets", "line 2: `strftime(t_ns)` is not in the dialect"),
        ("SELECT lenght(client) FROM deliveries", "did you mean length?"),
        ("SELECT split(client, '(?=-)') FROM deliveries", "line 1: `'(?=-)'` engines read this pattern"),
        ("SELECT split(client, link) FROM recovery r JOIN wan ON true", "a pattern has to be written out"),
        ("SELECT collect_list(client) FROM deliveries", "write array_sort(collect_list(x))"),
        ("SELECT rand() FROM runs", "line 1: `rand()` has another answer each time"),
        ("SELECT sum(lost) FROM delivery", "line 1: `delivery` is no table"),
        ("SELECT lost\nFROM deliveries\nWHERE nothing > 1", "line 3: Column 'nothing'"),
        ("SELECT lost FROM\nWHERE", "line 2: at `WHERE`"),
        ("SELECT upper(lost) FROM deliveries", "line 1: `lost` upper() takes a STRING (this is BIGINT)"),
        ("SELECT round(p99_ms, stream) FROM latency JOIN streams ON true", "a number written out"),
        ("SELECT client FROM deliveries\nLATERAL VIEW explode(x) v AS y", "LATERAL is not in the dialect"),
        ("SELECT 99999999999999999999", "exceeds 64 bits"),
        ("SELECT lost, FROM deliveries", "line 1: `,` before FROM"),
        ("SELECT problems < problems FROM runs", "cannot be compared"),
        ("SELECT client, sum(lost)\nFROM deliveries", 'line 1: Binder Error: column "client" must appear'),
        (
            "SELECT stream,\n lost / (lost - lost) FROM deliveries",
            "line 2: `lost / (lost - lost)` divides by zero",
        ),
        ("SELECT 1\n % 0", "divides by zero"),
        ("SELECT sum(t_ns * 4) FROM packets", "line 1: `sum(t_ns * 4)` exceeds 64 bits"),
        (
            "SELECT problems[9] FROM (SELECT split('a', 'b') AS problems)",
            "has no such element: write get(a, i)",
        ),
        (
            "SELECT CAST(client AS INT)\nFROM deliveries",
            "line 1: `CAST(client AS INT)` found a text that is no INT",
        ),
        ("SELECT DISTINCT ON (run) run FROM runs", "DISTINCT ON takes any rows"),
        ("SELECT 1; SELECT 2", "one question at a time"),
        ("FROM runs", "only statements that return rows"),
        *ENGINES_DIFFER.items(),
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
