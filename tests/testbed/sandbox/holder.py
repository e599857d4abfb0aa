"""A substitute for the CLI: `python -m tests.testbed.sandbox.holder TOKEN` holds a sandbox until it is
killed.
"""

import sys

from testbed.sandbox import Sandbox

if __name__ == "__main__":
    with Sandbox([sys.executable, "-m", "tests.testbed.sandbox.inhabitant"], token=sys.argv[1]) as sandbox:
        assert sandbox.channel.receive(20) == {"did": "settle"}
        sys.stdout.write("settled\n")
        sys.stdout.flush()
        sandbox.wait()
