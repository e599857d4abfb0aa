"""Two analysed runs for all tests here, and a database of the first."""

import pytest

from analysis.sql.cases import read_cases
from analysis.sql.questions import Questions, open_questions
from experiments.records.rundir import RunDirectory
from tests.analysis.inspect.packets.small_run import around_the_cut


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> list[RunDirectory]:
    """Write one run under a plain name, and under a name that needs quoting in SQL."""
    folder = tmp_path_factory.mktemp("runs")
    return [around_the_cut().write(folder / name) for name in ("a-run", "o'brien's \\ run")]


@pytest.fixture(scope="session")
def questions(runs):
    with open_questions(read_cases(runs[:1])) as opened:
        yield opened


@pytest.fixture(scope="session")
def ask(questions: Questions):
    return lambda question: questions.ask(question).table()
