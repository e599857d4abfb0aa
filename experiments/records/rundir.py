"""The run directory, the only interface between the testbed, which writes it, and the analysis, which reads
it.

All its paths are defined here and nowhere else. Files that a crash must not truncate (`run.json`,
`summary.json`) are written atomically (`experiments.files.whole_files`). The writers define the content of
the files.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from experiments.files.plain_name import Below, check_file, check_folder, plain_name, refuse_link
from experiments.records.json_files import read_json
from topologies.errors import InputError

if TYPE_CHECKING:
    from experiments.records.run_record import RunRecord

CAPTURE_ENDINGS = tuple(kind + packed for packed in ("", ".zst", ".gz") for kind in (".pcap", ".pcapng"))
"""Suffixes of captures; if a capture exists in several forms, the first counts."""

UNFINISHED_SUFFIX = ".part"
"""Suffix of folders that exist only while the analysis works."""

INDEX = ".index"
"""Suffix of indices of captures."""

KEY_LOG = "tls-keys.log"

RUN_JSON = "run.json"
POINTS = "points"
"""The folder of runs in a sweep's directory."""

RUNS = Path("runs")
"""The default folder of runs, where they are also looked up by name."""


@dataclass(frozen=True, slots=True)
class DatedDirectory:
    """The directory of a run, a sweep or a study, named by its time. It may not exist yet."""

    NOUN: ClassVar[str]  # in errors, as "run directory"
    RECORD: ClassVar[str]  # the file that makes it one
    path: Path

    @classmethod
    def create(cls, out: Path, name: str, now: datetime, token: str) -> Self:
        """Create a new directory below `out`.

        name: of the experiment or the study. now: UTC. token: 6 hexadecimal digits, to distinguish those of
        the same second. Raises FileExistsError if it exists, OSError if it cannot be created.
        """
        made = cls(out / f"{now:%Y%m%dT%H%M%SZ}-{name}-{token}")
        check_encoding(made.path)
        made.make()
        return made

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing one. Raises InputError if there is none, or `check_folders` refuses it."""
        check_encoding(path)
        found = cls(path)
        if not (path / cls.RECORD).is_file():
            raise InputError(str(path), None, "", f"is not a {cls.NOUN}: it has no {cls.RECORD}")
        found.check_folders()
        return found

    def make(self) -> None:
        """Create the directory. Raises FileExistsError if it exists, and OSError."""
        self.path.mkdir(parents=True)

    def check_folders(self) -> None:
        """Check that no folder in it is a symbolic link, and that its files are files. Raises InputError."""
        check_folder(self.figures)
        self.check_files()

    def check_files(self) -> None:
        """Check the pages and JSON files: none is a pipe or a folder. Raises InputError.

        Writing replaces links; `experiments.records.json_files` checks what it reads.
        """
        for path in self.path.iterdir():
            if path.suffix in {".json", ".html"} and not path.is_symlink():
                check_file(path)

    @property
    def name(self) -> str:
        """The name of the run, sweep or study, which is that of its directory."""
        return self.path.absolute().name

    report_html = Below("report.html")  # the report
    figures = Below("figures")  # the folder of PNG and SVG figures

    def figure(self, name: str, extension: str) -> Path:
        """Return a figure's path, as "png" or "svg"."""
        return self.figures / f"{plain_name(name, self.path)}.{extension}"


@dataclass(frozen=True, slots=True)
class RunDirectory(DatedDirectory):
    """A run's directory, which may not exist yet."""

    NOUN = "run directory"
    RECORD = RUN_JSON

    def check_folders(self) -> None:
        """Check that no folder in the run is a symbolic link. Raises InputError.

        A run is not trusted: files would be written or removed at the link's target. The run itself may be
        reached by a link. Linked files need no check: writing replaces links
        (`experiments.files.whole_files`). Pipes and sockets are refused: reading one would wait.
        """
        self.check_files()
        for folder in (
            *(self.captures, self.logs, self.deliveries, self.traffic, self.routing),
            *(self.analysis, self.unpacked, self.figures),
            *(self.path / name for name in ("storage", "programs")),
            self.machines,
        ):
            check_folder(folder)
        for folder in self.machines.iterdir() if self.machines.is_dir() else ():
            refuse_link(folder)
        for folder in (self.captures, self.logs, self.deliveries, self.traffic, self.analysis):
            for path in folder.iterdir() if folder.is_dir() else ():
                if not path.is_dir():
                    check_file(path)

    def make(self) -> None:
        """Create the directory and its folders. Raises FileExistsError if it exists, and OSError."""
        self.path.mkdir(parents=True)
        for folder in (self.captures, self.logs, self.deliveries, self.analysis, self.figures):
            folder.mkdir()

    @property
    def full_name(self) -> str:
        """A unique name; a sweep's run has the sweep's name as prefix."""
        folder = self.path.absolute().parent
        return f"{folder.parent.name}.{self.name}" if folder.name == POINTS else self.name

    run_json = Below(RUN_JSON)  # the record of the run
    summary_json = Below("summary.json")  # verdicts and headline numbers
    comparison_html = Below("comparison.html")  # the comparison of this run with others, if requested
    machines = Below("machines")  # the folder with a folder for each of several machines and its record
    captures = Below("captures")  # the folder of captures
    logs = Below("logs")  # the folder of logs
    deliveries = Below("deliveries")  # the folder of delivery logs

    def storage(self, host: str) -> Path:
        """Return the folder in which a host's process stores its persistent data."""
        return self.path / "storage" / plain_name(host, self.run_json)

    def program(self, host: str) -> Path:
        """Return the working directory of a host's program."""
        return self.path / "programs" / plain_name(host, self.run_json)

    # the folder of reports of background traffic generators; only runs with traffic have it
    traffic = Below("traffic")

    def traffic_report(self, name: str, burst: int) -> Path:
        """Return the report of a traffic burst's sender, iperf3's JSON."""
        return self.traffic / f"{plain_name(name, self.run_json)}-{burst}.json"

    def traffic_server_report(self, name: str, burst: int) -> Path:
        """Return the report of a traffic burst's receiver, iperf3's JSON."""
        return self.traffic / f"{plain_name(name, self.run_json)}-{burst}.server.json"

    # the folder of the routing daemons' configurations and logs; only runs with a routing protocol have it
    routing = Below("routing")

    analysis = Below("analysis")  # the folder of Parquet tables
    unpacked = Below("analysis", "unpacked")  # the folder of decompressed captures
    # the clock offsets of the machines, for a run on several machines
    clocks = Below("analysis", "clocks.json")
    figures = Below("figures")  # the folder of PNG and SVG figures
    # the keys of the programs' TLS connections, if any logged them: they decrypt the captures
    key_log = Below("captures", KEY_LOG)

    def program_key_log(self, host: str) -> Path:
        """Return the key log of a host's program, in its own folder, until it is collected."""
        return self.program(host) / KEY_LOG

    def program_key_logs(self, host: str) -> list[Path]:
        """Return all existing key logs of a program: one for each of its process generations."""
        path = self.program_key_log(host)
        return sorted(path.parent.glob(f"{path.stem}*{path.suffix}"))

    def capture(self, file: str) -> Path:
        """Return a capture's path by `CapturePlan.file`.

        If the file does not exist because it was compressed or converted, return the path of its replacement.
        """
        asked = self.captures / plain_name(file, self.run_json)
        if asked.exists():
            return asked
        stem = file.removesuffix(".pcap")
        others = (self.captures / (stem + ending) for ending in CAPTURE_ENDINGS)
        return next((other for other in others if other.is_file()), asked)

    def capture_index(self, capture: Path) -> Path:
        """Return the sidecar index of a capture."""
        return capture.with_name(capture.name + INDEX)

    def log(self, host: str) -> Path:
        """Return the log of a host's process, JSON lines."""
        return self.logs / f"{plain_name(host, self.run_json)}.jsonl"

    def host_collection(self, host: str) -> Path:
        """Return the file of a driver's collecting events and their keys; not every driver has one."""
        return self.deliveries / f"{plain_name(host, self.run_json)}.collection"

    def host_measures(self, host: str) -> Path:
        """Return the file of a host process's own measurements; not every process has one."""
        return self.deliveries / f"{plain_name(host, self.run_json)}.measures"

    def host_deliveries(self, host: str) -> Path:
        """Return the file of a host process's deliveries or publications."""
        return self.deliveries / f"{plain_name(host, self.run_json)}.deliveries"

    def table(self, name: str) -> Path:
        """Return a Parquet table of the analysis: "packets", "messages", "throughput"..."""
        return self.analysis / f"{name}.parquet"

    @contextmanager
    def unfinished(self, *names: str) -> Iterator[dict[str, Path]]:
        """Create a temporary folder for each named table's files, until the table is complete.

        The folders are removed with their content when the block or this process ends.
        """
        from experiments.files.scratch import scratch  # noqa: PLC0415 - keeps this module quick to import

        self.analysis.mkdir(parents=True, exist_ok=True)
        with scratch(".making-", self.analysis) as making:
            folders = {name: making / f"{name}{UNFINISHED_SUFFIX}" for name in names}
            for folder in folders.values():
                folder.mkdir()
            yield folders

    def read_run(self) -> "RunRecord":
        """Read run.json. Raises InputError if it is missing or malformed."""
        from experiments.records.run_record import read_record  # noqa: PLC0415 - keeps this module quick to import

        return read_record(self.run_json)

    def read_summary(self) -> dict[str, Any]:
        """Read summary.json. Raises InputError if it is missing or malformed."""
        from experiments.records.summary_file import check_summary  # noqa: PLC0415 - keeps this module quick to import

        return check_summary(read_json(self.summary_json), self.summary_json)


def is_key_log(file: str) -> bool:
    """Return whether a file of this name holds keys of TLS connections, in any folder."""
    stem, ending = KEY_LOG.split(".")
    return file.startswith(stem) and file.endswith(f".{ending}")


def check_encoding(path: Path) -> None:
    """Check that the path is UTF-8, as tables require. Raises InputError."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="replace")
        raise InputError(shown, None, "", "has a name that is not UTF-8: give it another one") from None


def is_run_name(name: str) -> bool:
    """Return whether the name has the form of runs and sweeps: a time and a distinguishing suffix."""
    return re.fullmatch(r"\d{8}T\d{6}Z-[A-Za-z0-9._-]+", name, re.ASCII) is not None


def run_argument(path: Path, working: Path | None = None) -> str:
    """Return the RUN argument, not quoted, that names the run at `path` in commands on pages and in pictures.

    It works in the working directory: a run below runs/ is named by its name, one elsewhere below the working
    directory by its relative path, any other by its absolute path. working: the working directory, if not the
    current one.
    """
    run, here = path.resolve(), (working or Path.cwd()).resolve()
    if run.parent == here / RUNS:
        return run.name
    return run.relative_to(here).as_posix() if run.is_relative_to(here) else str(run)
