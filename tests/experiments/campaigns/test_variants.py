"""Variants: named settings of an experiment, each a run of its own."""

from pathlib import Path

import pytest

from experiments.campaigns.sweep import axes, points
from experiments.campaigns.sweepdir import replay_command, runs
from experiments.loader import load_experiment, read_experiment
from testbed.cli.options import ExperimentArguments
from tests.refusals import refusal
from topologies.errors import InputError

TEXT = """\
name: several
topology: two-regions
system: sprinkler
roles: {proxy: 1, driver: 1, client: 1, configuration: 1}
workload: {event_size: 10B, rate: 10/s}
duration: 2s
variants:
  few: {}
  many: {roles.client: 3, workload.rate: 20/s}
  topics: {system: scribe, roles: {publisher: 1, member: 2}, workload: {kind: topics, event_size: 10B,
    rate: 10/s, topics: 1, subscriptions: {each: 1}}}
"""


@pytest.fixture
def several(tmp_path: Path):
    file = tmp_path / "several.yaml"
    file.write_text(TEXT)
    return file


def test_each_variant_is_the_experiment_with_its_settings(several):
    file = read_experiment(str(several))
    made = {name: file.point({"variant": name}) for name in file.experiment.variants}
    assert made["few"].roles == file.experiment.roles
    assert made["few"].variants == {}
    assert made["many"].roles["default"] == {"proxy": 1, "driver": 1, "client": 3, "configuration": 1}
    assert made["many"].workload.rate_per_s == 20
    assert made["topics"].system == "scribe"
    assert made["topics"].workload.kind == "topics"


def test_variants_are_the_first_axis_of_a_sweep(several):
    several.write_text(TEXT + "sweep: {duration: [1s, 2s]}\n")
    experiment = load_experiment(str(several))
    assert [each.values for each in runs(experiment.axes, 1, 1)] == [
        {"variant": name, "duration": duration}
        for name in ("few", "many", "topics")
        for duration in ("1s", "2s")
    ]
    assert points(axes({}, [])) == [{}]


def test_a_single_variant_has_a_replay_command(several):
    experiment = load_experiment(str(several), ["variant=many"])
    assert experiment.axes == {}
    assert experiment.workload.rate_per_s == 20
    run = runs(load_experiment(str(several)).axes, 2, 5)[4]
    assert replay_command("several.yaml", (), run, "local") == (
        "cutset run several.yaml --set sweep=null --set variant=many --seed 6 --repeat 1 --on local"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("many: {roles.client: 3", "many: {roles.clinet: 3"), "several.yaml:9: variants.many: with"),
        (("few: {}", "few: {repeat: 2}"), "belongs to all variants"),
    ],
)
def test_a_variant_that_does_not_fit_is_named(several, change, said):
    several.write_text(TEXT.replace(*change))
    assert said in refusal(read_experiment, str(several))


def test_several_chosen_variants_are_a_sweep_over_these(several):
    experiment = load_experiment(str(several), ['variant=["topics", "few"]'])
    assert experiment.axes == {"variant": ["topics", "few"]}
    with pytest.raises(InputError, match="there is no variant mayn"):
        read_experiment(str(several), ['variant=["few", "mayn"]'])


@pytest.mark.parametrize("name", ["nats-tuned", "link-failure-nats-tuned"])
def test_an_experiment_named_like_a_variant_is_explained(name):
    with pytest.raises(InputError, match=r"is a variant: give link-failure-systems --variant nats-tuned"):
        read_experiment(name)


def test_the_variant_option_selects_variants(several):
    one = ExperimentArguments(str(several), ("repeat=3",), ("many",)).read().experiment
    assert (one.axes, one.repeat, one.roles["default"]["client"]) == ({}, 1, 3)
    two = ExperimentArguments(str(several), ("repeat=3",), ("many", "few")).read().experiment
    assert (two.axes, two.repeat) == ({"variant": ["many", "few"]}, 3)


def test_variants_cannot_be_swept(several):
    several.write_text(TEXT + "sweep: {variant: [few, many]}\n")
    with pytest.raises(InputError, match="cannot be swept"):
        read_experiment(str(several))
