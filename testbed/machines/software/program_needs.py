"""A program that runs on a machine, with our code: reports missing needs of a system, and versions.

`python -m testbed.machines.software.program_needs` reads a JSON list of needs (`node.core.program.Need`) from
standard input and answers with a JSON object: `missing`, names, and `versions`, by name. It changes nothing.
The kernel ends it if it receives no request for `PATIENCE_S`.
"""

import json
import os
import sys

from node.core.program import Need
from systems.needs import missing, version_of
from testbed.machines.ssh.time_limit import limited
from testbed.sandbox.requirements import search_path

PATIENCE_S = 60.0


def main() -> None:
    """Answer one request."""
    with limited(PATIENCE_S):
        request = json.loads(sys.stdin.read())
    needs = [Need(**{**each, "version": tuple(each["version"])}) for each in request]
    path = search_path(os.environ)
    lacking = [need.name for need in missing(needs, path)]
    versions = {need.name: version_of(need, path) for need in needs if need.name not in lacking}
    sys.stdout.write(json.dumps({"missing": lacking, "versions": versions}) + "\n")


if __name__ == "__main__":
    main()
