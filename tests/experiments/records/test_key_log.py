"""Key logs: what counts of files that programs wrote."""

from pathlib import Path

import pytest

from experiments.records.key_log import client_randoms, key_lines

LINE = b"CLIENT_TRAFFIC_SECRET_0 " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n"


@pytest.mark.parametrize(
    "other",
    [
        b"# comment\n",
        b"\n",
        b"CLIENT_RANDOM 12 34\n",
        b"client_random " + b"ab" * 32 + b" cd\n",
        b"\x00\xff" * 30 + b"\n",
        b" " + LINE,
        LINE[:-1] + b" more\n",
    ],
)
def test_only_whole_lines_of_the_form_count(tmp_path: Path, other: bytes) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + other + LINE)
    assert list(key_lines(path)) == [LINE, LINE]


def test_half_a_line_at_the_end_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + LINE[:-20])
    assert list(key_lines(path)) == [LINE]


def test_connections_are_known_by_their_clients_random_values(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + LINE.replace(b"CLIENT", b"SERVER") + LINE.replace(b"ab" * 32, b"01" * 32))
    assert client_randoms(path) == {b"\xab" * 32, b"\x01" * 32}
