"""The description of a packed run for other programs and archives: `ro-crate-metadata.json`.

A Process Run Crate (RO-Crate 1.1, profile 0.5): which command ran when, with which version and input, and
every file with its size and SHA-256.
"""

import mimetypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

CRATE: Final = "ro-crate-metadata.json"
CLAIMS: Final = "claims.json"
_CONTEXT: Final = "https://w3id.org/ro/crate/1.1/context"
_CRATE_PROFILE: Final = "https://w3id.org/ro/crate/1.1"
_RUN_PROFILE: Final = "https://w3id.org/ro/wfrun/process/0.5"
_KINDS: Final = {".pcap": "application/vnd.tcpdump.pcap", ".parquet": "application/vnd.apache.parquet"}


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of an archive: its path below the run's folder, size in bytes, and SHA-256 in hexadecimal."""

    path: str
    size: int
    sha256: str


def crate(name: str, record: Mapping[str, Any], files: Iterable[PackedFile]) -> dict[str, Any]:
    """Return the description of a run or sweep. record: the plain content of its run.json or sweep.json."""
    listed = list(files)
    times = record.get("times") if isinstance(record.get("times"), Mapping) else record
    began, ended = (_date(times, key) for key in ("started_ns", "ended_ns"))
    experiment = record.get("experiment")
    asked = experiment if isinstance(experiment, Mapping) else {}
    about = " ".join(str(asked.get("description") or asked.get("name") or name).split())
    parts = [{"@id": each.path} for each in listed]
    commit = record.get("commit")
    graph = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": _CRATE_PROFILE},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": name,
            "description": about,
            "conformsTo": {"@id": _RUN_PROFILE},
            "hasPart": parts,
            "mentions": [{"@id": "#run"}],
            **({"datePublished": ended} if ended else {}),
        },
        {"@id": _RUN_PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {
            "@id": "#cutset",
            "@type": "SoftwareApplication",
            "name": "Cutset",
            **({"softwareVersion": str(commit)} if commit else {}),
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": f"cutset run {asked.get('name', name)}",
            "instrument": {"@id": "#cutset"},
            "result": parts,
            **({"startTime": began} if began else {}),
            **({"endTime": ended} if ended else {}),
        },
        *(_file(each) for each in listed),
    ]
    return {"@context": _CONTEXT, "@graph": graph}


def packed_files(content: Mapping[str, Any]) -> dict[str, PackedFile]:
    """Return the files that a description names, by path.

    The input is not trusted; invalid entries are skipped.
    """
    graph = content.get("@graph")
    found = {}
    for each in graph if isinstance(graph, list) else []:
        if not isinstance(each, Mapping) or each.get("@type") != "File":
            continue
        path, size, digest = (each.get(key) for key in ("@id", "contentSize", "sha256"))
        if isinstance(path, str) and isinstance(size, str) and size.isdecimal() and isinstance(digest, str):
            found[path] = PackedFile(path, int(size[:20]), digest)
    return found


def _file(each: PackedFile) -> dict[str, Any]:
    ending = f".{each.path.rpartition('.')[2]}"
    kind = _KINDS.get(ending) or mimetypes.guess_type(each.path)[0] or "application/octet-stream"
    return {
        "@id": each.path,
        "@type": "File",
        "contentSize": str(each.size),
        "encodingFormat": kind,
        "sha256": each.sha256,
    }


def _date(times: Any, key: str) -> str | None:
    value = times.get(key) if isinstance(times, Mapping) else None
    if not isinstance(value, int) or not 0 < value < 1 << 62:
        return None
    return datetime.fromtimestamp(value / 1e9, UTC).isoformat()
