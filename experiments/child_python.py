"""How every Python process of ours is started: none imports anything from the folder that it is started in.

`python -m` and `python -c` put the working directory in front of all else that is imported (sys.path), so
that a `random.py` in it takes the standard library's place, and runs as whoever started us. `-P` leaves it
out. What a child cannot be told by an option it is told by its environment (`SAFE_ENVIRONMENT`). Empty and
relative entries of PATH and PYTHONPATH mean the working directory too: `absolute_entries` drops them.
"""

import os
import sys
from collections.abc import Sequence

SAFE_PATH = "-P"
SAFE_ENVIRONMENT = {"PYTHONSAFEPATH": "1"}
"""For a Python that others start for us, as Spark does its workers (Python 3.11 and later)."""
ISOLATED = "-I"
"""For programs that need nothing but the standard library, also of a Python that knows no `-P` yet."""


def python_command(
    module: str, *arguments: str, python: str = sys.executable, options: Sequence[str] = ()
) -> list[str]:
    """The argument list that runs a module of ours. options: further ones, for the interpreter."""
    return [python, SAFE_PATH, *options, "-m", module, *arguments]


def program_command(program: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """The argument list that runs the text of a program which imports the standard library alone."""
    return [python, ISOLATED, "-c", program, *arguments]


def absolute_entries(path: str) -> str:
    """A search path, as PATH or PYTHONPATH, without what depends on the working directory."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))
