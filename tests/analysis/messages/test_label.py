"""The one-line labels of messages."""

import pytest

from analysis.messages.label import label
from node.protocols.sprinkler.messages import CODEC


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (
            {"type": "EVENTS", "stream": 2, "first_seq": 48210, "count": 132, "kind": 0},
            "EVENTS s2 [48210..48341]",
        ),
        ({"type": "EVENTS", "stream": 2, "first_seq": 7, "count": 1, "kind": 1}, "EVENTS s2 [7..7] gc"),
        (
            {"type": "SPARSE_EVENTS", "stream": 0, "first_seq": 10, "count": 3, "covered": 90, "kind": 0},
            "SPARSE_EVENTS s0 [10..99] 3 left",
        ),
        ({"type": "SUBSCRIBE", "stream": 2, "cnt": 48209}, "SUBSCRIBE s2 after 48209"),
        (
            {"type": "PUBLISH", "stream": 1, "request": 5, "count": 10, "kind": 0},
            "PUBLISH s1 requests [5..14]",
        ),
        ({"type": "ANSWERED", "stream": 1, "next": 5, "last": 9, "cnt": 12}, "ANSWERED s1 [5..9] of 12"),
        ({"type": "TOKEN", "configuration": 3}, "TOKEN configuration 3"),
        (
            {"type": "ADVERTISEMENT", "advertised": [{"stream": 0, "cnt": 412}, {"stream": 1, "cnt": 398}]},
            "ADVERTISEMENT s0 412 s1 398",
        ),
        ({"type": "CONFIGURATION", "configuration": 2, "members": [1, 0]}, "CONFIGURATION 2: 1 0"),
        # Uncaptured values, and fields without a column, are left out; long lists are shortened.
        (
            {"type": "SPARSE_EVENTS", "stream": 0, "first_seq": 10, "count": 3, "covered": None, "kind": 0},
            "SPARSE_EVENTS s0 3 left",
        ),
        ({"type": "HELLO", "stream": None}, "HELLO"),
        ({"type": "VIEW", "members": list(range(100))}, "VIEW 0 1 2 3 4 5 6 7 …"),
        ({"type": "NEW", "stream": 3}, "NEW"),
    ],
)
def test_labels_of_messages_follow_the_paper(row: dict[str, object], line: str) -> None:
    assert label(row, "sprinkler") == line


def test_every_message_has_a_label_phrase() -> None:
    assert [layout.name for layout in CODEC.by_type.values() if not layout.reads] == []
