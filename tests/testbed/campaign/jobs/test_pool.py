"""A pool replaces a worker that gives no answer in time, and does the other jobs."""

import json

import pytest

from testbed.campaign.hunting.worker import MODULE
from testbed.campaign.jobs import spark_task
from testbed.campaign.jobs.pool import Job
from testbed.campaign.jobs.simulated_run import simulation_pool


@pytest.mark.slow
def test_a_late_job_has_no_answer_and_the_next_one_has(tmp_path):
    request = {"run": str(tmp_path / "nowhere"), "analyze": False, "page": False}
    with simulation_pool(1) as pool:
        late, here = pool.results([Job("late", request, within_s=0.001), Job("here", request)])
    assert (late.subject, late.answer, late.is_late) == ("late", None, True)
    assert late.problem == "no answer within 0.001 s"
    assert here.answer is not None
    assert "FileNotFoundError" in here.answer["problem"]


def test_missing_packages_of_a_cluster_are_the_problem_of_its_jobs(tmp_path, monkeypatch):
    (tmp_path / "pydantic.py").write_text("raise ModuleNotFoundError('No module named pydantic')")
    monkeypatch.setattr(spark_task, "_unpacked", lambda: tmp_path)
    monkeypatch.setattr(spark_task, "_pools", {})
    found = json.loads(spark_task.answer_request("{}", module=MODULE, setup="{}", within_s=60.0))
    assert found["answer"] is None
    assert found["problem"].endswith("No module named pydantic")
