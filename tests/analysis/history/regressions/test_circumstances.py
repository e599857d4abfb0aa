"""Messages for nights that differ in more than the commit."""

import json

from analysis.history.regressions.circumstances import CIRCUMSTANCES, LETTERS_MAX, also_changed, in_short

BEFORE = dict.fromkeys(CIRCUMSTANCES, "same")


def test_only_differing_settings_and_machines_are_reported_by_path() -> None:
    before = BEFORE | {
        "settings": json.dumps({"workload.rate": "2000/s", "duration": "4s", "roles.client": 2}),
        "machine": json.dumps({"cpus": 2, "hostname": "h0"}),
    }
    after = BEFORE | {
        "settings": json.dumps({"workload.rate": "1000/s", "duration": "4s", "roles": {"client": 2}}),
        "machine": json.dumps({"cpus": 4, "hostname": "h0"}),
    }
    assert also_changed(before, after) == ("workload.rate 2000/s -> 1000/s", "machine.cpus 2 -> 4")


def test_circumstances_of_only_one_night_are_reported_too() -> None:
    set_later = BEFORE | {"settings": json.dumps({"faults": [{"cut": ["r0", "r1"]}]}), "kernel": ""}
    assert also_changed(BEFORE | {"settings": ""}, set_later) == (
        'faults.0.cut not set -> ["r0", "r1"]',
        "kernel same -> unknown",
    )


def test_long_values_are_cut_and_invalid_json_is_text() -> None:
    (told,) = also_changed(BEFORE, BEFORE | {"settings": "x" * 1000})
    assert told == f"settings same -> {'x' * (LETTERS_MAX - 1)}…"


def test_a_few_changes_are_shown_and_the_others_counted() -> None:
    changes = [f"a{number} 1 -> 2" for number in range(6)]
    assert in_short(changes[:2]) == "a0 1 -> 2, a1 1 -> 2"
    assert in_short(changes) == "a0 1 -> 2, a1 1 -> 2, a2 1 -> 2, a3 1 -> 2 and 2 more"
