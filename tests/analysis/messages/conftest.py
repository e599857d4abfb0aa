"""One dissector for all tests that start tshark."""

import pytest

from analysis.messages.wireshark import dissector
from node.systems import codecs
from tests.analysis.messages.tshark import PORT, SYSTEM, Tshark


@pytest.fixture(scope="session")
def tshark(tmp_path_factory: pytest.TempPathFactory) -> Tshark:
    script = tmp_path_factory.mktemp("dissector") / "sprinkler.lua"
    script.write_text(dissector(codecs()[SYSTEM], SYSTEM, PORT))
    return Tshark(script)
