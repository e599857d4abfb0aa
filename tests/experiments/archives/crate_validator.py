"""Validates unpacked archives with roc-validator, offline; prints its findings as JSON, by folder.

    PYTHONPATH=.venv/crate-validator python tests/experiments/archives/crate_validator.py CACHE FOLDER...

RO-Crate's context comes from the package rocrate, through the validator's HTTP cache, CACHE.sqlite.
"""

import io
import json
import sys
from importlib.resources import files

from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate_validator.services import validate
from urllib3 import HTTPResponse

CONTEXT = "https://w3id.org/ro/crate/1.1/context"


class PackagedContext(HTTPAdapter):
    """Answers each request with the context in the package."""

    def send(self, request, **_):
        content = io.BytesIO((files("rocrate") / "data/ro-crate.jsonld").read_bytes())
        headers = {"Content-Type": "application/ld+json"}
        return self.build_response(request, HTTPResponse(content, headers, 200, preload_content=False))


def findings(folder, cache):
    result = validate(
        {
            "rocrate_uri": folder,
            "profile_identifier": "process-run-crate-0.5",
            "requirement_severity": "RECOMMENDED",
            "cache_path": cache,
            "offline": True,
        }
    )
    issues = [f"{issue.severity.name}: {issue.message}" for issue in result.get_issues()]
    return issues + [f"SKIPPED: {check.identifier}" for check in result.skipped_checks]


if __name__ == "__main__":
    cache, *folders = sys.argv[1:]
    with CachedSession(cache, backend="sqlite", expire_after=-1) as session:
        session.mount("https://", PackagedContext())
        session.get(CONTEXT)
    json.dump({folder: findings(folder, cache) for folder in folders}, sys.stdout)
