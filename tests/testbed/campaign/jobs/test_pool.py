"""A pool replaces a worker that does not answer in time, and continues with the other jobs."""

import pytest

from testbed.campaign.jobs.pool import Job
from testbed.campaign.jobs.simulated_run import simulation_pool


@pytest.mark.slow
def test_a_late_job_has_no_answer_and_the_next_job_is_done(tmp_path):
    request = {"run": str(tmp_path / "nowhere"), "analyze": False, "page": False}
    with simulation_pool(1) as pool:
        late, here = pool.results([Job("late", request, within_s=0.001), Job("here", request)])
    assert (late.subject, late.answer, late.is_late) == ("late", None, True)
    assert late.problem == "no answer within 0.001 s"
    assert here.answer is not None
    assert "FileNotFoundError" in here.answer["problem"]
