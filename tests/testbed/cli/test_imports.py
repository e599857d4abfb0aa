"""A command imports only what it needs: heavy packages only if they are used."""

import subprocess
import sys

import pytest

from tests.analysis.capture.pcap.captures import write_pcap
from tests.analysis.inspect.packets.small_run import around_the_cut

HEAVY = {
    "pydantic",
    "yaml",
    "numpy",
    "pyarrow",
    "pandas",
    "pyspark",
    "duckdb",
    "matplotlib",
    "paramiko",
    "rich",
    "asyncio",
}
"""Each costs a command a tenth of a second or more, or belongs to work that only some do."""
OURS = {
    "analysis.capture.markers",
    "analysis.capture.pcap",
    "experiments.records.run_record",
    "experiments.campaigns.sweepdir",
    "node.core.machine",
    "topologies.model",
}
"""Imports that only readers of captures, runs or YAML, runs, and nodes need: many classes each."""
PLANS = {"pydantic", "yaml", "topologies.model"}
MESSAGES = PLANS | {"numpy", "pyarrow", "experiments.records.run_record"}

IMPORTED = """
import sys
from testbed.cli.main import run
words = [*sys.argv[2:], "then"]
while words:
    assert run(words[: words.index("then")]) == 0
    del words[: words.index("then") + 1]
print(*sorted(set(sys.argv[1].split(",")) & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("list", PLANS),
        ("plan link-failure", PLANS),
        ("--help then run --help then packets --help then report --help", set()),
    ],
)
def test_a_command_imports_only_what_it_needs(command, needed):
    assert imported_by(command.split()) <= needed


def test_messages_of_a_run_are_shown_without_readers_of_captures(tmp_path):
    run = around_the_cut().write(tmp_path / "a-run")
    assert imported_by(["packets", str(run.path), "--around", "cut", "--link", "r2-r3"]) <= MESSAGES


def test_a_question_about_a_capture_is_answered_without_pandas(tmp_path):
    capture = write_pcap(tmp_path / "a.pcap", [])
    imported = imported_by(["sql", str(capture), "SELECT count(*) FROM packets"])
    assert "pyarrow" in imported
    assert "pandas" not in imported


def imported_by(words: list[str]) -> set[str]:
    """Return the heavy packages and modules that a command imports in a new process."""

    arguments = [sys.executable, "-c", IMPORTED, ",".join(sorted(HEAVY | OURS)), *words]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return set(said.stderr.splitlines()[-1].split())
