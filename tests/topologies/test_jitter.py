"""Distributions of jitter by name and from files of measured quantiles."""

from pathlib import Path

import pytest

from topologies.errors import InputError
from topologies.jitter import NAMES, deviation, named_quantiles
from topologies.loader import load_topology

TOPOLOGY = """\
name: pair
regions: {{a: {{lan: {{delay: 1ms}}}}, b: {{}}}}
links: [{{between: [a, b], delay: 20ms, {link}}}]
"""


TABLE = "quantile,delay_ms\n0,18\n0.5,19\n1,60\n"


def links_of(folder: Path, link: str, table: str | None = None) -> Path:
    if table is not None:
        (folder / "delays.csv").write_text(table)
    (folder / "pair.yaml").write_text(TOPOLOGY.format(link=link))
    return folder / "pair.yaml"


@pytest.mark.parametrize("name", NAMES)
def test_quantiles_ascend_and_have_the_mean_0(name: str) -> None:
    values = [deviation(named_quantiles(name), n / 1000) for n in range(1001)]
    assert values == sorted(values)
    assert -1 <= values[0] < 0 < values[-1] == 1
    assert abs(sum(values) / len(values)) < 0.01


def test_a_table_gives_jitter_and_deviations_and_its_path_is_relative_to_the_topology(tmp_path: Path) -> None:
    topology = load_topology(str(links_of(tmp_path, "jitter_distribution: delays.csv", TABLE)))
    parameters = topology.links[0].forward_parameters
    assert parameters.jitter_us == 40_000
    delays_us = [20_000 + 40_000 * deviation(parameters.jitter_quantiles, at) for at in (0, 0.5, 0.75, 1)]
    assert delays_us == pytest.approx([18_000, 19_000, 39_500, 60_000])
    assert topology.links[0].backward_parameters == parameters


@pytest.mark.parametrize(
    ("link", "table", "said"),
    [
        ("jitter: 3ms, jitter_distribution: gauss", None, "should be uniform, normal, pareto or a file that"),
        ("jitter_distribution: delays.csv", "delay\n1\n", "should begin with quantile,delay_ms"),
        ("jitter_distribution: delays.csv", "quantile,delay_ms\n0,1\n", "should have 2 to 9,999 rows"),
        ("jitter_distribution: delays.csv", "quantile,delay_ms\n0,9\n1,8\n", "3.*no less delay"),
        ("jitter_distribution: delays.csv", "quantile,delay_ms\n0.1,8\n1,9\n", "from quantile 0 to 1"),
        ("jitter: 30ms, jitter_distribution: normal", None, "jitter: is more than the delay"),
        ("jitter: 2ms, jitter_distribution: delays.csv", TABLE, "jitter: follows from the file"),
        ("jitter_distribution: delays.csv", "quantile,delay_ms\n0,x\n1,9\n", "2.*delay_ms"),
    ],
)
def test_impossible_jitter_is_refused_in_one_line(
    tmp_path: Path, link: str, table: str | None, said: str
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        load_topology(str(links_of(tmp_path, link, table)))
    assert "\n" not in str(caught.value)


def test_a_heavy_tail_may_be_longer_than_the_delay(tmp_path: Path) -> None:
    link = load_topology(str(links_of(tmp_path, "jitter: 100ms, jitter_distribution: pareto"))).links[0]
    assert link.forward_parameters.jitter_us == 100_000


def test_generated_links_read_a_table_beside_their_file(tmp_path: Path) -> None:
    def generated(table: str, asymmetric: str) -> Path:
        (tmp_path / "ring.yaml").write_text(
            "name: ring\nkind: ring\nregions: 3\n"
            f"delays: {{from: 20ms, to: 20ms, asymmetric: {asymmetric}}}\n"
            f"link: {{jitter_distribution: {table}}}\n"
        )
        return tmp_path / "ring.yaml"

    links_of(tmp_path, "", TABLE)
    assert (
        load_topology(str(generated("delays.csv", "false"))).links[0].forward_parameters.jitter_us == 40_000
    )
    with pytest.raises(InputError, match=r"link.jitter_distribution: there is no file .*none.csv"):
        load_topology(str(generated("none.csv", "false")))
    with pytest.raises(InputError, match="is a file: give the link a delay, or each direction a file"):
        load_topology(str(generated("delays.csv", "true")))  # the table's deviations from which delay?
