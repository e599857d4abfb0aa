"""The page of captures without a run."""

import base64
import re
import shutil
from pathlib import Path

import pytest

from testbed.cli import main
from tests.analysis.taps.incident import incident


@pytest.fixture(scope="module")
def sites(tmp_path_factory) -> tuple[Path, Path]:
    return incident().write(tmp_path_factory.mktemp("incident"))


def written(path: Path, *captures: Path | str) -> str:
    assert main.run(["captures", *map(str, captures), "-o", str(path)]) == 0
    return path.read_text()


def test_two_taps_show_the_black_hole_with_its_lost_packets_and_the_clock(sites, tmp_path):
    page = written(tmp_path / "page.html", *sites)
    assert re.search(r"1\ssilence with tries, the longest 3.020 s; 1 without", page)
    assert re.search(r"<dt>site-a to site-b</dt><dd>[\d\s]+packets, 4 lost, 0 overtaken", page)
    assert re.search(r"<dt>Clock of site-b</dt><dd>\+2[45]\d\.\d{3} ms ± \d+\.\d{3} ms", page)
    [first, *_] = re.findall(r"image/svg\+xml;base64,([^\"]+)", page)
    svg = base64.b64decode(first).decode()
    assert svg.count('class="cross"') >= 4
    assert "DATA 100 B" in svg
    assert "cutset packets" in svg


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("taps", [1, 2])
def test_messages_are_counted_and_named_around_the_silence(tmp_path, taps):
    published = b"\x30\x62\x00\x04news" + bytes(92)
    captures = incident(server=1883, request=published).write(tmp_path)[:taps]
    page = written(tmp_path / "page.html", *captures, "--system", "mqtt")
    assert re.search(r">Publish Message</td>\s*<td[^>]*>99</td>", page)
    svg = base64.b64decode(re.findall(r"image/svg\+xml;base64,([^\"]+)", page)[0]).decode()
    assert "Publish Message [news] 100 B" in svg


def test_one_tap_shows_the_silence_between_its_addresses(sites, tmp_path):
    page = written(tmp_path / "page.html", sites[0])
    svg = base64.b64decode(re.findall(r"image/svg\+xml;base64,([^\"]+)", page)[0]).decode()
    assert "10.1.0.2" in svg
    assert "One-way delay" not in page
    assert "Connections that were reset" in page


def test_the_page_of_captures_without_silences_reports_that(sites, tmp_path):
    path = tmp_path / "page.html"
    assert main.run(["captures", str(sites[0]), "--to", "1.9", "--silence", "2", "-o", str(path)]) == 0
    assert "No connection was without progress for 2 s or longer" in path.read_text()


@pytest.mark.slow
def test_many_captures_are_counted_together(sites, tmp_path):
    for number in range(9):
        (tmp_path / f"{number}.pcap").symlink_to(sites[0])
    page = written(tmp_path / "page.html", tmp_path)
    assert "<h1>9 captures</h1>" in page
    assert re.search(r"<dt>Connections at all captures</dt><dd>18;", page)
    assert '"label":"all captures"' in page
    assert '"label":"0"' not in page


def test_a_round_trip_that_no_capture_shows_is_left_empty(sites, tmp_path):
    """The connection was opened before the first captured packet."""
    path = tmp_path / "page.html"
    assert main.run(["captures", str(sites[0]), "--from", "1", "-o", str(path)]) == 0
    services = path.read_text().split("Connections by client and server")[1].split("</table>")[0]
    assert "port 7999" in services
    assert ">0.000<" not in services
