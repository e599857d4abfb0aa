"""Key logs of TLS: only complete lines with keys count, since programs write these files."""

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
def test_lines_without_keys_are_ignored(tmp_path: Path, other: bytes) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + other + LINE)
    assert list(key_lines(path)) == [LINE, LINE]


def test_a_truncated_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + LINE[:-20])
    assert list(key_lines(path)) == [LINE]


def test_connections_are_identified_by_their_clients_random_values(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE + LINE.replace(b"CLIENT", b"SERVER") + LINE.replace(b"ab" * 32, b"01" * 32))
    assert client_randoms(path) == {b"\xab" * 32, b"\x01" * 32}
