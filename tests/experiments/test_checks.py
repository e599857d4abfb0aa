"""Expectations on streams are checked before the run."""

import pytest

from experiments.loader import load_experiment
from topologies.errors import InputError

BASE = ["topology=two-regions", "nemesis=null", "faults=[]"]


def load(streams: str, expected: str) -> None:
    load_experiment("nemesis", [*BASE, f"workload.streams={streams}", f"expect=[{expected}]"])


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        ("1", "streams.r1.lost == 0"),
        ("2", "streams.r0.1.lost == 0"),
        ("[{region: r0, name: shared}]", "streams.shared.duplicated == 0"),
        ("50", "streams.r1.49.lost == 0"),
    ],
)
def test_expectations_accept_stream_names(streams, expected):
    load(streams, expected)


@pytest.mark.parametrize(
    ("streams", "expected", "said"),
    [
        ("1", "streams.r2.lost == 0", r"expect\.0: no stream is named r2"),
        ("2", "streams.r1.lost == 0", r"no stream is named r1: did you mean r1\.[01]"),
        ("51", "streams.r1.0.lost == 0", "there are 102 streams: at most 100 have figures of their own"),
    ],
)
def test_an_unknown_stream_in_an_expectation_is_refused(streams, expected, said):
    with pytest.raises(InputError, match=said):
        load(streams, expected)
