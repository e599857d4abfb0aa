"""Events by content, in one order for all: what a broken exchange does wrong is told as exactly that."""

import json
from pathlib import Path

import pytest

from node.systems import build_machine
from testbed.cli import main

FILE = "exchange.yaml"


def from_the_200th(exchange, wrongly):
    """The 200th telling is done by `wrongly`: it is given the usual way, connection and message."""
    usual, told = exchange.tell, []

    def tell(connection, message):
        told.append(connection)
        (wrongly if len(told) == 200 else lambda way, *given: way(*given))(usual, connection, message)

    exchange.tell = tell


def drops(exchange):
    from_the_200th(exchange, lambda usual, connection, message: None)


def repeats(exchange):
    from_the_200th(exchange, lambda usual, *given: [usual(*given), usual(*given)])


def tells_a_stranger(exchange):
    """One event, once, while no subscription changes: all do at 3.0 to 3.5 s, and at 6.0 to 6.5 s."""
    usual, told = exchange.wanted_by, []

    def wanted_by(values):
        wanted = usual(values)
        strangers = sorted(exchange.asked.keys() - set(wanted))
        if told or not strangers or not 4_600_000 < exchange.now_us - exchange.schedule.start_us < 4_900_000:
            return wanted
        told.append(strangers[0])
        return [*wanted, strangers[0]]

    exchange.wanted_by = wanted_by


def swaps_for_one(exchange):
    """One of those that get two events, one after the other, gets them the other way round, once."""
    usual, held = exchange.tell, []

    def tell(connection, message):
        if not held and exchange.now_us > 5_000_000:
            held.append((connection, message))
        elif len(held) == 1 and connection == held[0][0]:
            usual(connection, message)
            usual(*held[0])
            held.append(None)
        else:
            usual(connection, message)

    exchange.tell = tell


def test_the_exchange_keeps_its_contract_through_a_cut(wrong_with):
    assert wrong_with(FILE, build_machine) == {}


@pytest.mark.parametrize(
    ("change", "what"),
    [(drops, "lost"), (repeats, "duplicated"), (tells_a_stranger, "stray"), (swaps_for_one, "out_of_order")],
)
def test_a_defect_is_told_as_what_it_is(wrong_with, with_role, change, what):
    assert wrong_with(FILE, with_role("exchange", change)) == {what: 1}


@pytest.mark.network
def test_on_real_packets(tmp_path, capsys):
    main.run(["run", str(Path(__file__).with_name(FILE)), "--out", str(tmp_path)])
    [run] = tmp_path.iterdir()  # a busy machine's run may be invalid; what came is right all the same
    summary = json.loads((run / "summary.json").read_text())
    assert {name: summary["events"][name] for name in ("lost", "stray", "duplicated", "out_of_order")} == {
        "lost": 0, "stray": 0, "duplicated": 0, "out_of_order": 0,
    }  # fmt: skip
    assert summary["events"]["delivered"] > 1_000
    assert summary["agreement"]["held"] is True
    assert summary["latency"]["p50_ms"] > 0
    capsys.readouterr()
    assert main.run(["follow", str(run), "r1", "100"]) == 0
    assert "never seen" not in capsys.readouterr().out
    assert main.run(["packets", str(run), "--type", "NOTIFY", "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert len(bytes.fromhex(first["key"])) == 16
    assert first["label"].endswith(f" {first['key'][:6]}")
