"""docs/results/: its tables have all measured numbers and the papers' values."""

from analysis.pages.study.results_pages import (
    NUMBERS,
    MeasuredPoint,
    MeasuredRow,
    numbers_of,
    publish,
    written_pages,
)
from experiments.campaigns.studies import listed_studies, planned_sweeps

ZONES = "meghdoot-2004 zones.uniform"


def test_the_tables_in_the_repository_are_as_generated():
    pages = dict(written_pages())
    assert {path.stem for path in pages} == {"meghdoot", "scribe", "sprinkler"}
    for path, text in pages.items():
        assert path.read_text() == text, "write them: python -m analysis.pages.study.results_pages"


def test_each_study_and_paper_experiment_has_its_table():
    names = {name for path, text in written_pages() for _, name, _ in NUMBERS.findall(text)}
    studies = {name for name, _ in listed_studies()}
    experiments = {file.experiment.name for file in planned_sweeps(None, ())}
    missing = sorted((studies | experiments) - names)
    assert not missing, "give each a place in docs/results/: <!-- numbers NAME -->, <!-- end -->"


def test_each_planned_point_has_a_column_even_if_it_was_not_measured():
    zones = MeasuredRow("zones", "25", f"{ZONES}.100")
    measured = MeasuredPoint("s", {"peers": 100}, (1, 2), "0123456789", (zones,))
    plans = [("x", "s", {"peers": peers, "order": "mixed"}) for peers in (100, 10_000)]
    head, _, line, _, origin = numbers_of("s", [measured], plans)
    assert head == "|  | 100 peers | 10,000 peers | paper | where | note |"
    assert line.startswith("| zones | 25 | not measured | 76 | table 1, 5.4 | missed by the default")
    assert origin == "`s`, seeds 1 to 2 at 01234567."
    other = MeasuredPoint(
        "s", {"peers": 10_000}, (1,), "f" * 10, (MeasuredRow("zones", "9", f"{ZONES}.10000"),)
    )
    head, _, line, *_ = numbers_of("s", [measured, other], plans)
    assert "100 peers (seeds 1 to 2 at 01234567) | 10,000 peers (seed 1 at ffffffff)" in head
    assert "| zones | 25 (paper: 76) | 9 (paper: 9,622) | beside ours | table 1, 5.4 |" in line
    assert numbers_of("s", [], plans) == ["Not measured: `s` with 100 peers; 10,000 peers."]


def test_published_numbers_replace_those_of_the_same_point_and_what_is_unmeasured_stays(tmp_path):
    page = tmp_path / "x.md"
    blocks = (f"<!-- numbers {name} -->\nold\n<!-- end -->\n" for name in ("s", "others of meghdoot-2004"))
    page.write_text("Words.\n" + "".join(blocks))
    row = MeasuredRow("zones", "25", f"{ZONES}.100")
    publish({"x": [MeasuredPoint("s", {}, (1,), "a", (row,))]}, tmp_path)
    assert "| zones | 25 | 76 |" in page.read_text()
    publish({"x": [MeasuredPoint("s", {}, (1,), "b", (MeasuredRow("zones", "75", row.paper),))]}, tmp_path)
    text = page.read_text()
    assert text.startswith("Words.\n")
    assert "| zones | 75 | 76 |" in text
    assert "seed 1 at b." in text
    assert "25 |" not in text
    assert "| Unique zones, uniform, 1000 | not measured | 652 | table 1, 5.4 |" in text
    assert "Unique zones, uniform, 100 |" not in text


def test_a_sweep_with_other_settings_is_shown_until_its_file_s_own_is_measured():
    usual, fewer = (
        MeasuredPoint("s", given, (1,), "a", (MeasuredRow("x", ours),))
        for given, ours in (({}, "1"), ({"roles.client": 9}, "2"))
    )
    assert "roles.client=9 |" in numbers_of("s", [fewer], [])[0]
    head, _, line, *_ = numbers_of("s", [usual, fewer], [])
    assert (head, line) == ("|  | here |", "| x | 1 |")


def test_points_share_a_column_if_their_rows_name_what_differs():
    points = [
        MeasuredPoint("s", {"peers": 10, **given}, (1,), "a", (MeasuredRow(what, "1", "not in it"),))
        for what, given in (("mixed", {"order": "mixed"}), ("first", {"order": "first"}))
    ]
    every = {"peers": 100, "order": "all"}
    plans = [("x", "s", each.parameters) for each in points]
    head, _, *lines, _, given = numbers_of("s", points, [*plans, ("x", "s", every)])
    assert head == "|  | 10 peers | 100 peers |"
    assert lines == ["| mixed | 1 | not measured |", "| first | 1 | not measured |"]
    assert given == "`s`, seed 1 at a. Paper: not in it."
    head, _, line, *_ = numbers_of("s", points[:1], [*plans, ("x", "s", every)])
    assert line == "| mixed | 1 | not measured | not in it |"
