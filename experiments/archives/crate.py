"""The description of a packed run for other programs and archives: `ro-crate-metadata.json`.

A Process Run Crate (RO-Crate 1.1, profile 0.5): which command ran when, with which version and input, how it
ended, under which licence others may use it, and every file with its size and SHA-256.
"""

import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, unquote

from experiments.publication import Publication
from experiments.records.run_record import SIMULATOR, Outcome

CRATE: Final = "ro-crate-metadata.json"
CLAIMS: Final = "claims.json"
_CONTEXT: Final = "https://w3id.org/ro/crate/1.1/context"
_CRATE_PROFILE: Final = "https://w3id.org/ro/crate/1.1"
_RUN_PROFILE: Final = "https://w3id.org/ro/wfrun/process/0.5"
_WORKFLOW_RUN: Final = "https://w3id.org/ro/terms/workflow-run#"  # terms that RO-Crate itself lacks
_STATUS: Final = "http://schema.org/"
_REVISION: Final = "https://identifiers.org/swh:1:rev:"
_KINDS: Final = {".pcap": "application/vnd.tcpdump.pcap", ".parquet": "application/vnd.apache.parquet"}


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of an archive: its path below the run's folder, size in bytes, and SHA-256 in hexadecimal."""

    path: str
    size: int
    sha256: str


def crate(
    name: str, record: Mapping[str, Any], files: Iterable[PackedFile], publication: Publication, now: datetime
) -> dict[str, Any]:
    """Return the description of a run or sweep.

    record: the plain content of its run.json or sweep.json. now: the time of packing.
    """
    listed = list(files)
    experiment = record.get("experiment")
    asked = experiment if isinstance(experiment, Mapping) else {}
    about = " ".join(str(asked.get("description") or asked.get("name") or name).split())
    parts = _compact([{"@id": quote(each.path, "/@=")} for each in listed])
    application = _application(record)
    publisher = _publisher(publication)
    by = _reference(publisher)
    images = _images(record)
    licence = {"@id": publication.license, "@type": "CreativeWork", "name": publication.license}
    entities = [
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
            "datePublished": _date(now),
            "license": _reference(licence),
            "author": by,
            "publisher": by,
            "hasPart": parts,
            "mentions": {"@id": "#run"},
        },
        {"@id": _RUN_PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        licence,
        publisher,
        application,
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": f"cutset run {asked.get('name', name)}",
            "description": about,
            "instrument": _reference(application),
            "agent": by,
            "containerImage": _compact([_reference(each) for each in images]) if images else None,
            "result": parts,
            **_times(name, record),
            **_status(record),
        },
        *images,
        *(_file(each) for each in listed),
    ]
    graph = [
        {key: value for key, value in each.items() if value is not None}
        for each in entities
        if each["@id"] is not None
    ]
    terms = ["sha256", *(["ContainerImage", "containerImage"] if images else [])]
    return {"@context": [_CONTEXT, {each: _WORKFLOW_RUN + each for each in terms}], "@graph": graph}


def _images(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the images of the run's programs, each once."""
    found: Any = record
    for key in ("plan", "programs", "roles"):
        found = found.get(key) if isinstance(found, Mapping) else None
    roles = found.values() if isinstance(found, Mapping) else ()
    images = [
        image
        for role in roles
        if isinstance(role, Mapping) and isinstance(image := role.get("image"), Mapping)
    ]
    return list(
        {
            digest: {
                "@id": f"#{digest}",
                "@type": "ContainerImage",
                "additionalType": {"@id": _WORKFLOW_RUN + "DockerImage"},
                "name": str(image.get("source")).rpartition("/")[2],
                "sha256": digest.removeprefix("sha256:"),
            }
            for image in images
            if isinstance(digest := image.get("digest"), str)
        }.values()
    )


def _application(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return Cutset: the hash of its commit is also its identifier in the Software Heritage archive."""
    commit = str(record.get("commit") or "")
    revision = re.match("[0-9a-f]{40}", commit)
    versions = record.get("versions")
    release = versions.get("cutset") if isinstance(versions, Mapping) else None
    url = f"{_REVISION}{revision[0]}" if revision else None
    return {
        "@id": url or "#cutset",
        "@type": "SoftwareApplication",
        "name": "Cutset",
        "url": url,
        "softwareVersion": commit or release,
    }


def _publisher(publication: Publication) -> dict[str, Any]:
    name, _, url = (publication.publisher or "").removesuffix(">").rpartition(" <")
    return {"@id": url or None, "@type": "Organization", "name": name, "url": url}


def _times(name: str, record: Mapping[str, Any]) -> dict[str, str]:
    """Return the start and end of a run; a killed run ends at its last recorded time.

    A run in virtual time records no wall-clock times: its name has the start, its record the duration.
    """
    times = record.get("times")
    stated = times if isinstance(times, Mapping) else record
    known = [
        datetime.fromtimestamp(value // 1_000_000 / 1000, UTC)
        for key, value in stated.items()
        if key.endswith("_ns") and isinstance(value, int) and 0 < value < 1 << 62
    ]
    if record.get("links") == SIMULATOR or not known:
        known = [_named_time(name)]
    simulation = record.get("simulation")
    wall_s = simulation.get("wall_s") if isinstance(simulation, Mapping) else None
    if isinstance(wall_s, float):
        known.append(known[0] + timedelta(seconds=wall_s))
    return {"startTime": _date(min(known)), "endTime": _date(max(known))}


def _named_time(name: str) -> datetime:
    """Return the time at the beginning of a run's name; the year 1 if there is none."""
    try:
        return datetime.strptime(name[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _status(record: Mapping[str, Any]) -> dict[str, str]:
    outcome, problems = record.get("outcome"), record.get("problems")
    if outcome == Outcome.COMPLETED:
        return {"actionStatus": f"{_STATUS}CompletedActionStatus"}
    last = problems[-1:] if isinstance(problems, list) else []
    why = ": ".join(map(str, [outcome or "killed before its end was recorded", *last]))
    return {"actionStatus": f"{_STATUS}FailedActionStatus", "error": why}


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
            found[unquote(path)] = PackedFile(unquote(path), int(size[:20]), digest)
    return found


def _file(each: PackedFile) -> dict[str, Any]:
    ending = f".{each.path.rpartition('.')[2]}"
    kind = _KINDS.get(ending) or mimetypes.guess_type(each.path)[0] or "application/octet-stream"
    return {
        "@id": quote(each.path, "/@="),
        "@type": "File",
        "contentSize": str(each.size),
        "encodingFormat": kind,
        "sha256": each.sha256,
    }


def _compact(values: Sequence[Any]) -> Any:
    """Return the values, or the only one, as RO-Crate recommends."""
    return values[0] if len(values) == 1 else values


def _reference(entity: Mapping[str, Any]) -> dict[str, Any] | None:
    return None if entity["@id"] is None else {"@id": entity["@id"]}


def _date(when: datetime) -> str:
    """Return the time in the profile's format, to the millisecond."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds")
