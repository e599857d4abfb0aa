"""Topologies from round-trip times between regions."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.cli import main
from tests.refusals import refusal
from topologies.errors import InputError
from topologies.imported.matrix import LAN_DELAY_US, matrix_file, read_matrix, topology_text
from topologies.loader import load_topology

SQUARE = "from,A,B,C d\nA,,100,30\nB,102,,\nC d,30,,\n"
LIST = "from,to,rtt_ms,jitter_ms,loss_percent\nA,B,100,4,2\nB,A,102,,\nA,C d,30,0,0\n"


def the_matrix(folder: Path, text: str):
    file = folder / "m.csv"
    file.write_text(text)
    return read_matrix(file)


@pytest.mark.parametrize("text", [SQUARE, LIST, "# a remark\n\n" + SQUARE])
def test_both_csv_forms_give_the_same_round_trips(tmp_path, text):
    matrix = the_matrix(tmp_path, text)
    assert matrix.regions == ("A", "B", "C-d")
    assert {pair: each.rtt_ms for pair, each in matrix.pairs.items()} == {("A", "B"): 101, ("A", "C-d"): 30}


def test_round_trips_over_the_topology_equal_the_measured_ones(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text(topology_text(the_matrix(tmp_path, LIST), "t", "as: measured", "1gbit"))
    topology = load_topology(str(file))
    link = next(each for each in topology.links if each.name == "A-B")
    lan_us = sum(topology.regions[region].lan.delay_us for region in ("A", "B"))
    assert lan_us == 2 * LAN_DELAY_US
    forward, backward = link.forward_parameters, link.backward_parameters
    assert forward.delay_us + backward.delay_us + 2 * lan_us == 101_000
    assert (1 - forward.loss) * (1 - backward.loss) == pytest.approx(0.98, abs=1e-5)
    assert forward.jitter_us + backward.jitter_us == 4_000
    assert forward.rate_bits_per_s == 10**9


def test_the_shipped_matrix_is_complete():
    matrix = read_matrix(matrix_file("ibm-cloud-2024-08"))
    assert len(matrix.regions) == 10
    assert len(matrix.pairs) == 45
    assert matrix.pairs["london", "madrid"].rtt_ms == 27
    assert matrix.pairs["toronto", "london"].rtt_ms == 82.5
    assert matrix.restricted_to(["tokyo", "london"]).regions == ("london", "tokyo")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rows"),
        ("from,A,B\nA,,x\n", "m.csv:2: rtt_ms 'x' is not a number"),
        ("from,A,B\nA,,0\n", "rtt_ms 0 should be more than 0"),
        ("from,A,A\nA,,1\n", "names a region twice"),
        ("from,A b,a-B\na-B,1,\n", "A b and a-B would both be called a-B"),
        ("from,A,B\nA,,1,2,3\n", "has 4 values for 2 regions"),
        ("from,to,rtt_ms\nA,B\n", "should have from, to, rtt_ms"),
        ("from,to,rtt_ms,loss_percent\nA,B,1,100\n", "loss_percent 100 should be from 0 to 99"),
        ('from,"A\nA,1\n', "is not a line of CSV"),
        ("from,A,B\n,,1\n", "has a region without a name"),
    ],
)
def test_invalid_matrices_are_refused_with_a_reason(tmp_path, text, said):
    assert said in refusal(the_matrix, tmp_path, text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("m")
    (folder / "m.csv").write_text(text, encoding="utf-8", errors="replace")
    try:
        matrix = read_matrix(folder / "m.csv")
    except InputError:
        return
    assert all(each.rtt_ms > 0 for each in matrix.pairs.values())


def test_the_command_writes_a_valid_topology(tmp_path, capsys):
    file = tmp_path / "clouds.yaml"
    arguments = ["topology", "matrix", "ibm-cloud-2024-08", "--regions", "london, tokyo", "-o", str(file)]
    assert main.run(arguments) == 0
    assert list(load_topology(str(file)).regions) == ["london", "tokyo"]
    assert main.run(["topology", "matrix", "ibm-cloud"]) == 2
    assert main.run(["topology", "matrix", "ibm-cloud-2024-08", "--regions", "londn"]) == 2
    assert main.run(["topology", "matrix", "ibm-cloud-2024-08", "--rate", "fast"]) == 2
    assert main.run(["topology", "matrix", str(tmp_path / "nothing.csv")]) == 2
    said = capsys.readouterr().err
    assert "known are ibm-cloud-2024-08" in said
    assert "did you mean london?" in said
    assert "nothing.csv: cannot be read" in said


def test_renamed_regions_are_reported_and_found_by_either_name(tmp_path, capsys):
    file = tmp_path / "rtts.csv"
    file.write_text("from,to,rtt_ms\nNew York,london,70\nlondon,paris,8\nNew York,paris,76\n")
    for name in ("New York", "New-York"):
        written = tmp_path / f"{name}.yaml"
        assert (
            main.run(["topology", "matrix", str(file), "--regions", f"{name},london", "-o", str(written)])
            == 0
        )
        assert list(load_topology(str(written)).regions) == ["New-York", "london"]
        said = "renamed, because names are letters, digits and hyphens: New York is New-York\n"
        assert capsys.readouterr().err == said
