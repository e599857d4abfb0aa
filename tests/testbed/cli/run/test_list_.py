"""`cutset list`: a line each, below the question that an experiment answers."""

import re
import sys

import click
import pytest

from experiments import loader
from testbed.campaign import listing
from testbed.cli import main


def test_experiments_and_topologies_have_a_line_each(capsys):
    assert main.run(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Experiments: what if a link fails?"
    said = "  link-failure +The link between two of four regions fails and comes back; "
    assert any(re.match(said, line) for line in lines)
    described = {name: said for name, _, said in (line.strip().partition("  ") for line in lines)}
    assert described["three-regions"].strip() == (
        "Three regions in a full mesh, after figure 5a of the Sprinkler paper."
    )
    assert lines.index("Topologies") > 0


def test_on_a_terminal_a_long_description_continues_below(capsys, monkeypatch):
    main.run(["list"])
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    main.run(["list"])
    shown = click.unstyle(capsys.readouterr().out)
    assert max(map(len, whole.splitlines())) > 60 >= max(map(len, shown.splitlines()))
    said = r"(\n {23,}| )".join(("The link", "between", "two", "of", "four", "regions"))
    assert re.search(rf"\n  link-failure +{said}", shown)
    assert shown.split() == whole.split()


def test_experiments_are_grouped_by_the_question_they_answer():
    sections = listing.sections()
    titles = [title for title in sections if title.startswith("Experiments: ")]
    found = {name: title for title in titles for name in sections[title]}
    links, processes, by_chance, systems, load = listing.QUESTIONS
    assert found["link-failure"] == found["scribe-link-failure"] == links
    assert found["proxy-crash"] == found["scribe-churn"] == processes
    assert found["nemesis"] == by_chance
    assert found["link-failure-systems"] == found["topics-systems"] == systems
    assert found["throughput"] == found["collection"] == load
    assert sorted(found) == loader.experiment_names()


def test_a_paper_s_experiments_and_studies_are_listed(capsys):
    assert main.run(["list", "--paper", "sprinkler"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\n  link-failure +section 5\.3, figures 7, 8: The link ", out)
    assert "scribe" not in out
    assert main.run(["list", "--paper", "scribe"]) == 0
    assert "scribe-joins" in capsys.readouterr().out
    assert main.run(["list", "--paper", "paxos"]) == 2
    assert "nothing is after a paper 'paxos'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("system", "line"), [("sprinkler", "advertisement_period +1s"), ("nats", "pings_max +2")]
)
def test_a_system_s_fields_are_listed_with_their_defaults(capsys, system, line):
    assert main.run(["list", system]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"\n  {line}\n", out)
    assert re.search(r"\n  stream\n", out)


def test_an_unknown_system_is_refused_with_the_known_ones(capsys):
    assert main.run(["list", "sprinkle"]) == 2
    assert "no system 'sprinkle', but " in capsys.readouterr().err
