"""The run directory: the only thing between the testbed, which writes it, and the analysis, which reads it.

Every path in it stands here and nowhere else. What a crash must not tear (`run.json`, `summary.json`) is
written whole (`experiments.files.whole_files`). What stands inside the files is their writers' matter.
"""

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from experiments.files.plain_name import check_folder, plain_name, refuse_link
from experiments.records.json_files import read_json
from topologies.errors import InputError

if TYPE_CHECKING:
    from experiments.records.run_record import RunRecord

CAPTURE_ENDINGS = tuple(kind + packed for packed in ("", ".zst", ".gz") for kind in (".pcap", ".pcapng"))
"""How names of captures end; of several forms of one capture, the first counts."""

IN_THE_MAKING = ".part"
"""How folders end that stand in the analysis' folder only while it works."""

INDEX = ".index"
"""How the names of captures' indices end."""

KEY_LOG = "tls-keys.log"

RUN_JSON = "run.json"
POINTS = "points"
"""The folder in a sweep's directory that has the directories of its runs."""

RUNS = Path("runs")
"""Where runs are kept unless told otherwise, and looked for by name."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A run's directory, there or not yet there."""

    path: Path

    @classmethod
    def create(cls, out: Path, experiment_name: str, now: datetime, token: str) -> Self:
        """Make the directory of a new run below `out`.

        now: when the run starts, UTC. token: 6 hexadecimal digits that tell runs of the same second apart.
        Raises FileExistsError if this run exists, OSError if it cannot be made.
        """
        run = cls(out / f"{now:%Y%m%dT%H%M%SZ}-{experiment_name}-{token}")
        check_encoding(run.path)
        run.make()
        return run

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing run. Raises InputError if there is none, or `check_folders` refuses it."""
        check_encoding(path)
        run = cls(path)
        if not run.run_json.is_file():
            raise InputError(str(path), None, "", "is no run directory: it has no run.json")
        run.check_folders()
        return run

    def check_folders(self) -> None:
        """Raises InputError if a folder in the run is a symbolic link: a run may come from anybody, and what
        is written or removed there would be elsewhere. The run itself may be reached by a link.

        Files need no check: each is put in the place of what has its name (`experiments.files.whole_files`).
        """
        for folder in (
            *(self.captures, self.logs, self.deliveries, self.traffic),
            *(self.analysis, self.unpacked, self.figures),
            *(self.path / name for name in ("storage", "programs")),
            self.machines,
        ):
            check_folder(folder)
        for folder in self.machines.iterdir() if self.machines.is_dir() else ():
            refuse_link(folder)

    def make(self) -> None:
        """Make the directory and its folders. Raises FileExistsError if it is there, and OSError."""
        self.path.mkdir(parents=True)
        for folder in (self.captures, self.logs, self.deliveries, self.analysis, self.figures):
            folder.mkdir()

    @property
    def name(self) -> str:
        """The run's name: that of its directory."""
        return self.path.absolute().name

    @property
    def full_name(self) -> str:
        """A name that no other run has: with its sweep's before it, if it is one of a sweep's."""
        folder = self.path.absolute().parent
        return f"{folder.parent.name}.{self.name}" if folder.name == POINTS else self.name

    @property
    def run_json(self) -> Path:
        """What ran and how far it got."""
        return self.path / RUN_JSON

    @property
    def summary_json(self) -> Path:
        """Verdicts and headline numbers."""
        return self.path / "summary.json"

    @property
    def report_html(self) -> Path:
        """The page."""
        return self.path / "report.html"

    @property
    def shipping_lock(self) -> Path:
        """Who brings files of other machines here."""
        return self.path / "shipping.lock"

    @property
    def comparison_html(self) -> Path:
        """This run held against others, if somebody asked for it."""
        return self.path / "comparison.html"

    @property
    def machines(self) -> Path:
        """The folder that has a folder for what each of several machines says of its part of the run."""
        return self.path / "machines"

    @property
    def captures(self) -> Path:
        """The folder of captures."""
        return self.path / "captures"

    @property
    def logs(self) -> Path:
        """The folder of logs."""
        return self.path / "logs"

    @property
    def deliveries(self) -> Path:
        """The folder of records of deliveries."""
        return self.path / "deliveries"

    def storage(self, host: str) -> Path:
        """The folder in which a host's process keeps what is to outlive it."""
        return self.path / "storage" / plain_name(host, self.run_json)

    def program(self, host: str) -> Path:
        """The folder in which a host's program starts: its files, and what it leaves there."""
        return self.path / "programs" / plain_name(host, self.run_json)

    @property
    def traffic(self) -> Path:
        """The folder of what generators of other people's traffic reported; only runs with any have it."""
        return self.path / "traffic"

    def traffic_report(self, name: str, burst: int) -> Path:
        """What the sender of a burst of traffic reported, iperf3's JSON."""
        return self.traffic / f"{plain_name(name, self.run_json)}-{burst}.json"

    def traffic_server_report(self, name: str, burst: int) -> Path:
        """What its receiver reported, likewise."""
        return self.traffic / f"{plain_name(name, self.run_json)}-{burst}.server.json"

    @property
    def analysis(self) -> Path:
        """The folder of Parquet tables."""
        return self.path / "analysis"

    @property
    def unpacked(self) -> Path:
        """The folder of captures that were compressed."""
        return self.analysis / "unpacked"

    @property
    def clocks(self) -> Path:
        """How far the machines' clocks were from each other, of a run on several machines."""
        return self.analysis / "clocks.json"

    @property
    def figures(self) -> Path:
        """The folder of PNG and SVG figures."""
        return self.path / "figures"

    @property
    def key_log(self) -> Path:
        """The keys of the programs' TLS connections, if any logged them: who has it can read the captures."""
        return self.captures / KEY_LOG

    def program_key_log(self, host: str) -> Path:
        """Where a host's program logs such keys, in its own folder, until they are collected."""
        return self.program(host) / KEY_LOG

    def program_key_logs(self, host: str) -> list[Path]:
        """All of them that are there: of a program that was started again, one for each of its lives."""
        path = self.program_key_log(host)
        return sorted(path.parent.glob(f"{path.stem}*{path.suffix}"))

    def capture(self, file: str) -> Path:
        """A capture, by `CapturePlan.file`.

        If it is not there any more, because somebody compressed or converted it, the one that took its place.
        """
        asked = self.captures / plain_name(file, self.run_json)
        if asked.exists():
            return asked
        stem = file.removesuffix(".pcap")
        others = (self.captures / (stem + ending) for ending in CAPTURE_ENDINGS)
        return next((other for other in others if other.is_file()), asked)

    def capture_index(self, capture: Path) -> Path:
        """The sidecar index of a capture."""
        return capture.with_name(capture.name + INDEX)

    def log(self, host: str) -> Path:
        """The log of a host's process, JSON lines."""
        return self.logs / f"{plain_name(host, self.run_json)}.jsonl"

    def host_collection(self, host: str) -> Path:
        """Which of a driver's events collect, and their keys; not every driver has it."""
        return self.deliveries / f"{plain_name(host, self.run_json)}.collection"

    def host_measures(self, host: str) -> Path:
        """What a host's process measured itself; not every one does."""
        return self.deliveries / f"{plain_name(host, self.run_json)}.measures"

    def host_deliveries(self, host: str) -> Path:
        """What a host's process delivered or published."""
        return self.deliveries / f"{plain_name(host, self.run_json)}.deliveries"

    def table(self, name: str) -> Path:
        """A Parquet table of the analysis: "packets", "messages", "throughput"..."""
        return self.analysis / f"{name}.parquet"

    def table_in_the_making(self, name: str) -> Path:
        """Where the files of a table are gathered until it is whole."""
        return self.analysis / f"{name}{IN_THE_MAKING}"

    def figure(self, name: str, extension: str) -> Path:
        """A figure, as "png" or "svg"."""
        return self.figures / f"{plain_name(name, self.run_json)}.{extension}"

    def read_run(self) -> "RunRecord":
        """The content of run.json. Raises InputError if it is missing or malformed."""
        from experiments.records.run_record import read_record  # noqa: PLC0415 - quick to import without

        return read_record(self.run_json)

    def read_summary(self) -> dict[str, Any]:
        """The content of summary.json. Raises InputError if it is missing or malformed."""
        from experiments.records.summary_file import check_summary  # noqa: PLC0415 - quick to import without

        return check_summary(read_json(self.summary_json), self.summary_json)


def is_key_log(file: str) -> bool:
    """Whether a file of this name has keys of TLS connections, wherever it stands."""
    stem, ending = KEY_LOG.split(".")
    return file.startswith(stem) and file.endswith(f".{ending}")


def check_encoding(path: Path) -> None:
    """Raises InputError if a folder on the way has a name that is not UTF-8, as tables' paths have to be."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="replace")
        raise InputError(shown, None, "", "has a name that is not UTF-8: give it another one") from None


def is_run_name(name: str) -> bool:
    """Whether runs and sweeps are named so: a time, and what tells those of a second apart."""
    return re.fullmatch(r"\d{8}T\d{6}Z-[A-Za-z0-9._-]+", name, re.ASCII) is not None


def run_argument(path: Path, working: Path | None = None) -> str:
    """The RUN argument, not quoted, by which a command on a page or in a picture names the run at `path`.

    It works where the page was made: below runs/ a run goes by its name, elsewhere below the working
    directory by its relative path; a run that stands anywhere else has only its absolute path, which works
    everywhere on this machine. working: the working directory, if not the current one.
    """
    run, here = path.resolve(), (working or Path.cwd()).resolve()
    if run.parent == here / RUNS:
        return run.name
    return run.relative_to(here).as_posix() if run.is_relative_to(here) else str(run)
