#!/bin/sh
# A Process Run Crate has the time at which a run ended, in a form of ISO 8601. roc-validator judges it by
# profile process-run-crate-0.5, whose message is "The Action SHOULD have an endTime in ISO 8601 format". The
# context of RO-Crate 1.1 comes out of the package rocrate.
#
# Packages: roc-validator==0.13.0, rocrate==0.13.0
# Guess: all forms with date, time and zone pass.
# Seen: only whole seconds or milliseconds with a zone in digits pass; Z, and the six digits of Python's
#   isoformat(), do not.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: roc-validator==0.13.0 rocrate==0.13.0
venv/bin/python - <<'EOF'
import io
import json
from importlib.resources import files
from pathlib import Path

from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate_validator.services import validate
from urllib3 import HTTPResponse

class PackagedContext(HTTPAdapter):
    def send(self, request, **_):
        content = io.BytesIO((files("rocrate") / "data/ro-crate.jsonld").read_bytes())
        headers = {"Content-Type": "application/ld+json"}
        return self.build_response(request, HTTPResponse(content, headers, 200, preload_content=False))

def accepted(number, time):
    folder = Path(f"crate-{number}")
    folder.mkdir()
    run = {"@id": "#run", "@type": "CreateAction", "instrument": {"@id": "https://tool.example.org"}, "endTime": time}
    tool = {"@id": "https://tool.example.org", "@type": "SoftwareApplication", "name": "tool"}
    root = {"@id": "./", "@type": "Dataset", "name": "run", "mentions": {"@id": "#run"}}
    about = {"@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": {"@id": "./"}}
    graph = {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": [about, root, tool, run]}
    (folder / "ro-crate-metadata.json").write_text(json.dumps(graph))
    settings = {"profile_identifier": "process-run-crate-0.5", "requirement_severity": "RECOMMENDED"}
    result = validate({"rocrate_uri": str(folder), "cache_path": "cache", "offline": True} | settings)
    return not any("endTime in ISO 8601" in str(issue.message) for issue in result.get_issues())

with CachedSession("cache", backend="sqlite", expire_after=-1) as session:
    session.mount("https://", PackagedContext())
    session.get("https://w3id.org/ro/crate/1.1/context")
times = {
    "2026-03-14T02:00:00+00:00": True,
    "2026-03-14T02:00:00.123+00:00": True,
    "2026-03-14T02:00:00.123456+00:00": False,
    "2026-03-14T02:00:00Z": False,
}
seen = {time: accepted(number, time) for number, time in enumerate(times)}
for time, passes in seen.items():
    print(time, "passes" if passes else "does not pass")
assert seen == times
EOF
