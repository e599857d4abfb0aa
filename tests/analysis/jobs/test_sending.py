"""Files sent to executors are readable only for them, and removed from all of them."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis.jobs import sending
from analysis.jobs.sending import RemoteWorkers
from experiments.records.rundir import RunDirectory


def test_a_file_is_sent_once_under_an_unguessable_name(tmp_path: Path) -> None:
    """The name must be random, because Spark's file server requires no secret."""
    sent: list[str] = []
    run = RunDirectory(tmp_path / "run")
    run.make()
    capture = run.captures / "r0-proxy-0.pcap"
    capture.write_bytes(b"packets")
    names = []
    for _ in range(2):
        with RemoteWorkers(SimpleNamespace(addFile=sent.append, defaultParallelism=1), run) as workers:
            names += [workers._send(capture), workers._send(capture)]
    assert names[0] == names[1] != names[2] == names[3]
    assert len(sent) == 2
    assert all(re.fullmatch(r"[0-9a-f]{32}-r0-proxy-0\.pcap", name) for name in names)


class Cluster:
    """Two executors; the test gives the one that runs each job. Ctrl-C arrives while a file is sent."""

    def __init__(self, *runs_on: set[int]) -> None:
        self.runs_on, self.removed, self.defaultParallelism = list(runs_on), [], 2
        self._jsc = SimpleNamespace(
            sc=lambda: SimpleNamespace(statusTracker=lambda: SimpleNamespace(getExecutorInfos=lambda: "012"))
        )

    def addFile(self, path: str) -> None:  # noqa: N802
        self.sent = Path(path).name
        raise KeyboardInterrupt

    def parallelize(self, items: list[list[str]], _: int) -> SimpleNamespace:
        self.removed = items[0]
        return SimpleNamespace(map=lambda _: SimpleNamespace(collect=lambda: self.runs_on.pop(0)))


def test_a_file_that_ctrl_c_interrupts_is_removed_from_all_executors_when_they_are_free(
    tmp_path: Path,
) -> None:
    run = RunDirectory(tmp_path / "run")
    run.make()
    (run.captures / "r0-proxy-0.pcap").write_bytes(b"packets")
    cluster = Cluster({1}, {1}, {1, 2}, {2})  # the second one ends its cancelled task meanwhile
    with pytest.raises(KeyboardInterrupt), RemoteWorkers(cluster, run) as workers:
        workers._send(run.captures / "r0-proxy-0.pcap")
    assert cluster.removed == [cluster.sent]
    assert cluster.runs_on == [{2}]


def test_files_of_an_executor_that_was_killed_are_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for executor in ("0", "2"):
        (tmp_path / executor).mkdir()
        (tmp_path / executor / "random-r0.pcap").touch()
        (tmp_path / executor / "stderr").touch()
    monkeypatch.setattr(sending.SparkFiles, "getRootDirectory", lambda: str(tmp_path / "2"))
    sending._remove(["random-r0.pcap"])
    assert [path.name for path in tmp_path.glob("*/*")] == ["stderr", "stderr"]
