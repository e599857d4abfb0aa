"""Compiles the core, virtual time and Sprinkler with mypyc: `make native`, two minutes, needs a C compiler.

The compiled copy is a whole package `node` in the virtual environment. Modules that define messages, and
those that users' classes extend, stay as they are.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import node

FOLDERS = ("core", "sim", "protocols/sprinkler")
INTERPRETED = (
    "core/bounds.py",
    "core/content",
    "core/declaration.py",
    "core/errors.py",
    "core/framing.py",
    "core/message_layout.py",
    "core/peers/small_machine.py",
    "core/program.py",
    "core/specification.py",
    "core/study.py",
    "protocols/sprinkler/declaration.py",
    "protocols/sprinkler/messages.py",
    "protocols/sprinkler/parameters.py",
    "protocols/sprinkler/reading.py",
)
"""Modules, and one folder, whose dataclasses or classes mypyc does not support."""
SHOWN = 4000
"""Characters of the compiler's output that are shown if it fails."""


def modules(package: Path) -> list[str]:
    """Return the paths of modules to compile, relative to the folder of the package."""
    left_out = {package / each for each in INTERPRETED}
    assert all(each.exists() for each in left_out), "INTERPRETED names what is not there"
    found = (path for folder in FOLDERS for path in (package / folder).rglob("*.py"))
    return sorted(
        str(path.relative_to(package.parent))
        for path in found
        if path.name != "__init__.py" and left_out.isdisjoint((path, path.parent))
    )


def main() -> int:
    """Compile; return mypyc's exit code."""
    package, made = node.HERE, node.NATIVE
    started = made.with_name("native-unfinished")
    shutil.rmtree(started, ignore_errors=True)
    shutil.copytree(package, started / "node", ignore=shutil.ignore_patterns("__pycache__"))
    command = [str(made.with_name("bin") / "mypyc"), *modules(started / "node")]
    level = os.environ | {"MYPYC_OPT_LEVEL": "2"}
    done = subprocess.run(command, cwd=started, env=level, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout[-SHOWN:] + done.stderr[-SHOWN:])
        sys.stderr.write("cutset: mypyc failed; it needs a C compiler and the headers of Python\n")
        return done.returncode
    shutil.rmtree(started / "build")
    shutil.rmtree(made, ignore_errors=True)
    started.rename(made)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
