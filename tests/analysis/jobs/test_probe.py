"""The probe of executors reports their packages and visible files before work starts."""

import subprocess

import pytest

from analysis.errors import AnalysisError
from analysis.jobs.cluster import check_probe_answers, write_modules
from analysis.jobs.probe import ProbeAnswer, ProbeRequest, answer_probe
from tests.analysis.jobs.standalone import python


def test_missing_packages_of_executors_are_named(tmp_path):
    question = ProbeRequest(tmp_path, "token", {})
    modules = write_modules(tmp_path / "modules.zip")
    bare = python(tmp_path / "bare", packages=False)
    code = (
        "from analysis.jobs.probe import *; print(answer_probe(ProbeRequest(Path(sys.argv[1]), 'token', {})))"
    )
    done = subprocess.run(
        [bare, "-c", code, tmp_path],
        cwd=tmp_path,
        env={"PYTHONPATH": str(modules)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "missing=('numpy', 'pyarrow'), reads=False, written='seen-" in done.stdout
    assert answer_probe(question).missing == ()
    with pytest.raises(AnalysisError, match="/bare, which has no numpy and no pyarrow: install them there"):
        check_probe_answers([ProbeAnswer("h", "/bare", ("numpy", "pyarrow"), reads=True, written=None)])


def test_files_of_another_size_do_not_count_as_the_run(tmp_path):
    capture = tmp_path / "a.pcap"
    capture.write_bytes(b"12345678")
    question = ProbeRequest(tmp_path, "token", {capture: 8})
    assert not answer_probe(question).reads
    question.note.write_text("token")
    assert answer_probe(question).reads
    capture.write_bytes(b"1234")
    assert not answer_probe(question).reads
