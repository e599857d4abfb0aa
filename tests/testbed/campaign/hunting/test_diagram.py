"""The messages around a violation: at all disturbances, however many messages there are."""

from experiments.hunting.case import HuntCase, HuntDisturbance
from testbed.campaign.hunting.diagram import LINES_MAX, diagram

ONE, OTHER = "r0/member-0", "r1/member-0"


def message(at_us, number=0, kind=None):
    return {"time_us": at_us, "source": ONE, "target": OTHER, "kind": kind or f"K{number % 90}"}


def test_of_many_messages_those_near_disturbances_are_shown():
    crash = HuntDisturbance("crash", 9_000_000, 1_000_000, (OTHER,))
    cut = HuntDisturbance("cut", 1_000_000, 500_000, ("r0", "r1"))
    messages = [message(number * 10_000, number) for number in range(1_200)]
    text = diagram(messages, HuntCase(1, {}, (cut, crash)), [ONE])
    lines = text.splitlines()
    assert sum(" K" in line for line in lines) == LINES_MAX
    for at_s in ("1.0000", "1.5000", "9.0000", "10.0000"):
        assert any(line.lstrip().startswith(at_s) and " K" in line for line in lines)
    counted = [int(line.split("… ")[1].split()[0]) for line in lines if "… " in line]
    assert sum(counted) == len(messages) - LINES_MAX
    times = [float(line.split()[0]) for line in lines[1:] if line.split()[0] != "…"]
    assert times == sorted(times)


def test_few_messages_are_all_shown_except_steady_traffic():
    messages = [message(100 * number, kind="Heartbeat") for number in range(41)] + [
        message(5_000, kind="Join")
    ]
    text = diagram(messages, HuntCase(1, {}, ()), [ONE])
    assert "Join" in text.splitlines()[1]
    assert text.splitlines()[-1] == "left out, as there are many: Heartbeat"
    assert "…" not in text
