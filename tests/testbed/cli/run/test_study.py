"""`cutset study`: its output and files, and errors of invalid parameters."""

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.campaigns.studies import (
    chosen_study,
    listed_studies,
    planned_studies,
    planned_sweeps,
    settings_of_lists,
)
from experiments.campaigns.studydir import StudyDirectory
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.loader import read_experiment
from experiments.records.run_record import Outcome
from testbed.campaign.in_use import sole_writer
from testbed.campaign.sweeps import study, sweep_run
from testbed.cli.main import run

pytestmark = pytest.mark.slow

SMALL = ["--set", "nodes=300"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Run a study of two seeds at once; return its directory."""
    out = tmp_path_factory.mktemp("studies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("testbed.campaign.sweeps.study.side_by_side", lambda *size: 2)
        assert run(["study", "scribe-groups", *SMALL, "--repeat", "2", "--out", str(out)]) == 0
    [directory] = out.iterdir()
    return directory


def test_the_command_lists_the_studies(capsys):
    assert run(["study"]) == 0
    assert "scribe-groups " in capsys.readouterr().out


def test_each_seed_has_its_tables_and_numbers(made):
    for seed in ("1", "2"):
        folder = made / "seeds" / seed
        numbers = json.loads((folder / "numbers.json").read_text())
        groups = pq.read_table(folder / "groups.parquet").to_pydict()
        nodes = pq.read_table(folder / "nodes.parquet").to_pydict()
        assert groups["size"] == [int(300 * rank**-1.25 + 0.5) for rank in range(1, len(groups["size"]) + 1)]
        assert min(groups["size"]) >= 11
        assert sum(groups["edges"]) == sum(nodes["entries"])
        assert min(groups["rad"]) >= 0.9
        assert numbers["members"] == sum(groups["size"])
        links = pq.read_table(folder / "links.parquet").to_pydict()
        assert numbers["scribe_packets"] == sum(links["scribe"])
        over_lans = [load for load, is_lan in zip(links["scribe"], links["lan"], strict=True) if is_lan]
        assert sum(over_lans) == 2 * sum(groups["edges"])
        assert sum(links["joins"]) == sum(links["scribe"])  # the same edges in the opposite direction (IV.D)
        assert sum(links["ip"]) < sum(links["naive"])


def test_a_long_seed_shows_its_progress_beside_others(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("testbed.campaign.sweeps.study.TOLD_EVERY_S", 0)
    folder = tmp_path / "01-scribe-groups"
    folder.mkdir()
    copyfile(made / "study.json", folder / "study.json")
    assert study._execute({"study": str(folder), "seed": 1}) == {"problem": None}
    assert re.search(r"seed 1 of 01-scribe-groups: .+, \d+%\n", capsys.readouterr().err)


def test_the_page_has_the_papers_numbers_beside_ours_and_figures(made):
    page = (made / "report.html").read_text()
    assert "2,489,824" in page
    assert "Delay penalty by group" in page
    names = {path.name for path in (made / "figures").iterdir()}
    assert {"figure-6.svg", "figure-7.png", "figure-8.svg", "figure-9.png", "figure-10.png"} <= names


def test_an_interrupted_study_resumes_with_the_same_results(made, capsys):
    one, two = (made / "seeds" / seed / "members.parquet" for seed in ("1", "2"))
    before = pq.read_table(two)
    assert not pq.read_table(one).equals(before)
    two.unlink()
    (two.parent / "numbers.json").unlink()
    assert run(["study", "--resume", str(made)]) == 0
    assert (two.parent / "numbers.json").exists()
    assert "seed 1:" not in capsys.readouterr().err
    assert pq.read_table(two).equals(before)


def test_the_bottleneck_remover_bounds_entries_and_collapse_saves_some(made, tmp_path):
    def entries(folder):
        return pq.read_table(folder / "nodes.parquet")["entries"].to_numpy()

    asked = ["scribe-groups-bounded", *SMALL, "--set", "entries_max=12"]
    bounded = made_once(tmp_path / "bounded", *asked, page=False)
    assert entries(bounded).max() <= 12 < entries(made / "seeds" / "1").max()
    packets = json.loads((bounded / "numbers.json").read_text())
    assert packets["joins_packets"] > packets["scribe_packets"]
    long, collapsed = (
        entries(made_once(tmp_path / study, study, *SMALL, "--set", "groups=30", page=False))
        for study in ("scribe-small-groups", "scribe-small-groups-collapse")
    )
    assert np.mean(collapsed) < np.mean(long)


def made_once(out, *asked, page=True):
    """Run a study of one seed, with or without its page; return the folder of the seed."""
    with pytest.MonkeyPatch.context() as patch:
        if not page:
            patch.setattr(study, "write_study_report", lambda directory: directory.path)
        assert run(["study", *asked, "--out", str(out)]) == 0
    [directory] = out.iterdir()
    return directory / "seeds" / "1"


def test_growth_by_load_makes_trees_flatter_and_bounds_entries(tmp_path):
    folder = made_once(tmp_path, "scribe-depth", "--set", "nodes=600", "--set", "entries_max=40")
    rows = pq.read_table(folder / "depths.parquet").to_pylist()
    base, bounded = ([row for row in rows if row["c"] == c] for c in (0, 40))
    assert [row["subscribers"] for row in base] == [1, 2, 5, 10, 20, 50, 100, 200, 500, 600]
    assert base[-1]["tree"] == bounded[-1]["tree"] == 600
    assert max(row["entries_most"] for row in bounded if row["subscribers"] <= 200) == 41
    assert bounded[-1]["entries_most"] < base[-1]["entries_most"]  # children that know no other way are kept
    assert all(low["mean"] < high["mean"] for low, high in zip(bounded[:4], base[:4], strict=True))


def test_growth_lifts_only_leaves_so_a_tree_of_all_nodes_is_as_deep_as_its_routes(tmp_path):
    """Check the draft's rules (3.4.1): a join ends at the first node of its route that is in the tree."""
    folder = made_once(tmp_path, "scribe-depth", "--set", "nodes=2000")
    found = pq.read_table(folder / "depths.parquet").to_pylist()
    base, grown = (row for row in found if row["subscribers"] == 2000)
    assert base["lifted"] == base["full"] == 0
    assert grown["full"] >= 2
    assert 75 < grown["lifted"] < 500  # those that came when there was room
    assert grown["lifted_inner"] <= grown["lifted"] // 100
    assert grown["inner"] == pytest.approx(base["inner"], rel=0.05)
    assert base["mean"] - grown["mean"] < 0.5 < grown["mean"] - math.log(2000, 75)


def test_an_overlay_by_joins_is_like_one_built_at_once(tmp_path):
    folder = made_once(tmp_path, "scribe-joins", "--set", "nodes=150", "--set", "routes=500")
    numbers = json.loads((folder / "numbers.json").read_text())
    assert numbers["wrong_leaf_sets"] == numbers["missed_joins"] == numbers["missed_at_once"] == 0
    routes = pq.read_table(folder / "routes.parquet").to_pandas().groupby("made")
    hops, took = routes["hops"].mean(), routes["took_us"].sum()
    assert hops["joins"] == pytest.approx(hops["at once"], rel=0.05)
    assert took["joins"] == pytest.approx(took["at once"], rel=0.15)
    assert pq.read_table(folder / "growth.parquet")["nodes"].to_pylist() == [100, 150]
    entries = pq.read_table(folder / "tables.parquet").to_pandas().groupby("made")["entries"].mean()
    assert entries["joins"] == pytest.approx(entries["at once"], rel=0.05)


def test_routes_are_longer_in_larger_overlays_and_converge(tmp_path):
    folder = made_once(tmp_path, "scribe-routes", "--set", "nodes=1500", "--set", "routes=300")
    routes = pq.read_table(folder / "routes.parquet").to_pandas()
    hops = routes.groupby(["network", "nodes"])["hops"].mean()
    for network in ("plane", "transit-stub"):
        assert hops[network, 1000] < hops[network, 1500] < math.log(1500, 16) + 0.3
    assert (routes["until_us"] <= routes["took_us"].max()).all()
    plane = routes[routes["network"] == "plane"]
    assert plane["took_us"].sum() / plane["direct_us"].sum() == pytest.approx(1.4, rel=0.15)  # 2001, 2.1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["scribe-gruops"], "did you mean scribe-groups?"),
        (["scribe-groups", "--set", "nods=3"], "did you mean nodes?"),
        (["scribe-groups", "--set", "nodes=3"], "nodes: should be from 32"),
        (["scribe-groups", "--set", "nodes=many"], "nodes: "),
        (["scribe-groups", "--set", "nodes"], "should be NAME=VALUE"),
        (["--resume", "empty"], "study.json"),
        (["--resume", "no-study"], "study.json: study: scribe has no study nope"),
        (["--resume", "no-parameter"], "study.json: parameters.nods: scribe-groups has no such parameter"),
        (["--resume", "no-value"], "study.json: parameters.nodes: should be from 32"),
        (["--paper", "kafka"], "no study is after a paper 'kafka'"),
        (["--all", "--set", "pears=3"], "pears: neither the studies nor the experiments have it"),
        (["--all", "scribe-groups"], "give a study, or --all, or --paper NAME"),
        (["--all", "--paper", "scribe"], "give a study, or --all, or --paper NAME"),
        (["--paper", "sprinkler", "--set", "duration=2"], "duration: "),
        (["--paper", "meghdoot", "--set", "workload.rate=5/s"], "no experiment has figures of meghdoot"),
        (["--set", "nodes=40"], "give a study, or --all, or --paper NAME"),
        (["--resume", ".", "--seed", "2"], "resumes what was begun"),
    ],
)
def test_errors_are_one_line(asked, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    studies = {"no-study": ("nope", {}), "no-parameter": ("scribe-groups", {"nods": 3})}
    for folder, (name, parameters) in (studies | {"no-value": ("scribe-groups", {"nodes": 3})}).items():
        Path(folder).mkdir()
        content = {"system": "scribe", "study": name, "parameters": parameters, "seeds": [1]}
        Path(folder, "study.json").write_text(json.dumps(content))
    assert run(["study", *asked]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_events_arrive_despite_churn_and_a_cut(tmp_path):
    small = [
        "--set",
        "nodes=64",
        "--set",
        "topics=3",
        "--set",
        "duration=60s",
        "--set",
        "session_min_min=120",
    ]
    folder = made_once(tmp_path, "scribe-churn", *small)
    rows = pq.read_table(folder / "scenarios.parquet").to_pylist()
    assert [(row["session_min"], row["variant"]) for row in rows] == [
        (minutes, variant) for minutes in (120, 0) for variant in ("exactly-once", "best-effort")
    ]
    cut, cut_best_effort = rows[-2:]
    assert cut["came"] == cut["due"] > cut_best_effort["came"] > 0
    assert all(row["maintenance_per_s"] > 0 for row in rows)


def test_events_visit_every_affected_zone_once_while_peers_join(tmp_path):
    small = ["--set", "peers=40", "--set", "subscriptions=80", "--set", "events=500"]
    folder = made_once(tmp_path, "meghdoot-uniform", *small)
    numbers = json.loads((folder / "numbers.json").read_text())
    assert numbers["checked"] == 5
    assert numbers["missed"] == numbers["repeats"] == numbers["strays"] == 0
    events = pq.read_table(folder / "events.parquet").to_pydict()
    assert len(events["visited"]) == 500
    assert events["peers"] == sorted(events["peers"])
    assert all(1 <= visited <= there for visited, there in zip(*events.values(), strict=True))
    peers = pq.read_table(folder / "peers.parquet").to_pydict()
    assert len(peers["received"]) == 40
    assert sum(pq.read_table(folder / "zones.parquet")["degree"].to_pylist()) == 40
    assert sum(peers["subscriptions"]) >= 80
    assert "figure 9a" in (folder.parents[1] / "report.html").read_text()


def test_the_events_of_a_study_may_be_rows_of_a_file(tmp_path, capsys):
    """Use equal quotes: each event affects only the first zone, once all peers have joined."""
    table = pa.table(
        {
            "date": ["2001-05-07"] * 3,
            "symbol": ["acme"] * 3,
            **{name: [20.0] * 3 for name in ("open", "high", "low", "close")},
            "volume": [1_000] * 3,
        }
    )
    pq.write_table(table, tmp_path / "quotes.parquet")
    small = ["--set", "peers=12", "--set", "subscriptions=40", "--set", "events=300"]
    asked = ["meghdoot-stocks", *small, "--set", f"file={tmp_path / 'quotes.parquet'}"]
    events = pq.read_table(made_once(tmp_path / "runs", *asked, page=False) / "events.parquet").to_pandas()
    assert events[events["peers"] == 12]["visited"].tail(50).nunique() == 1
    assert run(["study", "meghdoot-stocks", "--set", "file=none.csv", "--out", str(tmp_path / "bad")]) == 2
    assert "none.csv" in capsys.readouterr().err


def test_the_basic_algorithm_repeats_visits_and_the_printed_check_saves_most(tmp_path):
    small = ["--set", "peers=20", "--set", "subscriptions=60", "--set", "events=300"]
    found = {}
    for form in ("basic", "checked"):
        asked = ("meghdoot-stocks", *small, "--set", f"propagation={form}")
        found[form] = json.loads(
            (made_once(tmp_path / form, *asked, page=False) / "numbers.json").read_text()
        )
    assert found["basic"]["missed"] == found["checked"]["missed"] == 0
    assert found["checked"]["repeats"] < found["basic"]["repeats"] / 2


def test_the_more_matching_costs_the_more_zones_are_split(tmp_path):
    small = ["--set", "peers=30", "--set", "subscriptions=60", "--set", "events=300"]
    zones = []
    for cost in ("0", "1000"):
        folder = made_once(
            tmp_path / cost, "meghdoot-uniform", *small, "--set", f"match_cost={cost}", page=False
        )
        zones.append(len(pq.read_table(folder / "zones.parquet")))
    assert zones[0] < zones[1]


def test_every_variant_has_the_same_events_when_peers_fail(tmp_path):
    small = ["--set", "peers=20", "--set", "subscriptions=60", "--set", "after_s=5"]
    folder = made_once(tmp_path, "meghdoot-failures", *small)
    events = pq.read_table(folder / "events.parquet").to_pandas()
    assert set(events.groupby("variant").size()) == {200}
    assert events.wanted.sum() > 0
    assert events[events.at_s < 0].missed.sum() == 0
    numbers = json.loads((folder / "numbers.json").read_text())
    assert numbers["alive mirror"] == numbers["alive no copies"] == 18
    assert numbers["lost no copies"] > numbers["lost mirror"]
    assert (events.missed >= events.missed_lost).all()
    assert events[events.variant == "mirror, confirmed, repeated"].missed.sum() == 0


def test_routes_of_peers_have_hops_of_the_papers_order(tmp_path):
    small = ["--set", "peers=150", "--set", "attributes=2", "--set", "routes=300"]
    folder = made_once(tmp_path, "meghdoot-hops", *small)
    rows = pq.read_table(folder / "routes.parquet").to_pandas()
    assert (rows["zones"] == rows["peers"]).all()
    hops = rows.groupby(["dimensions", "peers"])["hops"].mean()
    for dimensions in (2, 4):
        for peers in (100, 150):
            assert 0.2 < hops[dimensions, peers] / (dimensions * peers ** (1 / dimensions)) < 0.5


FEW = ["--set", "peers=20", "--set", "subscriptions=20", "--set", "events=60"]


TINY = ("roles.client=1", "roles.proxy=1", "workload.rate=50/s", "duration=8s", "expect=[events.lost == 0]")
SHORT = (*TINY, "faults.cut.at=6s", "faults.restore.at=7s")


def test_a_list_of_studies_survives_a_failed_one_and_resumes_it(tmp_path, capsys):
    plans = [chosen_study(name, FEW[1::2]) for name in ("meghdoot-uniform", "meghdoot-stocks")]
    plans[0][2]["peers"] = 1
    outage = read_experiment("link-failure-paper", SHORT)
    assert study.resume_study(study.run_studies(plans, [outage], [1], tmp_path)) == 1
    assert "01-meghdoot-uniform/study.json: parameters.peers: should be from 2" in capsys.readouterr().err
    [folder] = tmp_path.iterdir()
    assert "uniform" not in (folder / "meghdoot.md").read_text()
    assert "| Brief drop in throughput | at t = 6 s" in (folder / "sprinkler.md").read_text()
    done = (folder / "02-meghdoot-stocks" / "seeds" / "1" / "numbers.json").stat()
    broken = StudyDirectory(folder / "01-meghdoot-uniform")
    broken.write(replace(broken.read(), parameters={**plans[0][2], "peers": 20}))
    assert run(["study", "--resume", str(folder)]) == 0
    assert (folder / "02-meghdoot-stocks" / "seeds" / "1" / "numbers.json").stat() == done
    page = (folder / "meghdoot.md").read_text()
    assert "[01-meghdoot-uniform](01-meghdoot-uniform/report.html)" in page
    assert page.count("| Unique zones |") == 2


def test_damaged_parts_of_a_list_are_named_and_the_others_have_their_page(tmp_path, capsys):
    plans = [chosen_study(name, FEW[1::2]) for name in ("meghdoot-uniform", "meghdoot-stocks")]
    folder = study.run_studies(plans, [], [1], tmp_path)
    assert study.resume_study(folder) == 0
    uniform, stocks = (folder / "01-meghdoot-uniform", folder / "02-meghdoot-stocks")
    table = stocks / "seeds" / "1" / "peers.parquet"
    os.truncate(table, 100)
    assert run(["study", "--resume", str(folder)]) == 1
    assert f"problem: {table}: is missing or damaged: " in capsys.readouterr().err
    assert (folder / "meghdoot.md").read_text().count("| Unique zones |") == 1
    assert run(["study", "--resume", str(stocks)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(table) in line
    (uniform / "study.json").unlink()
    assert run(["study", "--resume", str(folder)]) == 1
    assert f"problem: {uniform}: has neither study.json nor sweep.json" in capsys.readouterr().err


def test_a_study_that_another_command_makes_is_refused(tmp_path, capsys):
    folder = study.new_study(chosen_study("meghdoot-uniform", FEW[1::2]), [1], tmp_path)
    with sole_writer(folder):
        assert run(["study", "--resume", str(folder)]) == 3
    assert "another command is using it" in capsys.readouterr().err


def test_a_sweep_that_did_not_pass_is_a_problem_whenever_its_list_is_resumed(tmp_path, capsys):
    outage = read_experiment("link-failure-paper", (*SHORT, "expect=[events.published > 100000]"))
    folder = study.run_studies([], [outage], [1], tmp_path)
    for _ in range(2):
        assert run(["study", "--resume", str(folder)]) == 1
        assert "problem: 01-link-failure-paper failed: see" in capsys.readouterr().err


def test_a_run_without_events_after_the_cut_has_a_page_without_figures_of_it(tmp_path, capsys):
    kills = [f"{{at: 6s, kill: {region}/driver-0}}" for region in ("r0", "r1", "r2", "r3")]
    ended = "faults=[{name: cut, at: 6s, cut: [r2, r3]}, {name: restore, at: 7s, restore: [r2, r3]}"
    outage = read_experiment("link-failure-paper", (*TINY, ", ".join([ended, *kills]) + "]"))
    folder = study.run_studies([], [outage], [1], tmp_path)
    run(["study", "--resume", str(folder)])
    assert "Traceback" not in capsys.readouterr().err
    page = (folder / "sprinkler.md").read_text()
    assert "| Runs | 1" in page
    assert "Brief drop in throughput" not in page


def test_every_sweep_of_the_papers_can_be_resumed_from_its_record(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_run, "execute", lambda sweep, analyze: Outcome.INTERRUPTED)
    folder = study.run_studies([], planned_sweeps(None, []), [1], tmp_path)
    left = {
        path.name[3:]: sweep_run.continue_sweep(SweepDirectory(path))[0].runs for path in folder.iterdir()
    }
    assert len(left["throughput"]) == 45
    assert all(len(runs) > 0 for runs in left.values())


def test_all_studies_have_every_point_of_their_papers():
    plans = planned_studies(None, [])
    assert {name for _, name, _ in plans} == {name for name, _ in listed_studies()}
    assert [given["peers"] for _, name, given in plans if name == "meghdoot-stocks"] == [100, 1_000, 10_000]
    assert settings_of_lists(None, ["duration=9s", "peers=5", "workload.rate=5/s"]) == (
        ["duration=9s", "peers=5"],
        ["duration=9s", "workload.rate=5/s"],
    )
    meghdoot = planned_studies("meghdoot-2004", ["peers=50"])
    assert {system for system, _, _ in meghdoot} == {"meghdoot"}
    assert [given["peers"] for _, name, given in meghdoot if name == "meghdoot-stocks"] == [50]


def test_interpretations_give_different_zones_from_the_same_events(tmp_path):
    few = ["--set", "peers=8", "--set", "subscriptions=60", "--set", "events=150"]
    for other in ("load_counts=matching", "split_rule=less-work", "simulation_event=action", "wanted=quotes"):
        few += ["--set", other]
    folder = made_once(tmp_path, "meghdoot-readings", *few, "--set", "events_after_joins=1")
    rows = {row["order"]: row for row in pq.read_table(folder / "readings.parquet").to_pylist()}
    assert {order: row["peers"] for order, row in rows.items()} == dict.fromkeys(rows, 8)
    assert rows["subscriptions-first"]["zones"] == 8  # no events yet: nothing to copy for
    assert rows["mixed"]["zones"] < 8
    assert rows["installed"]["degree_max"] >= 1
