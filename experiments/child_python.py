"""Command lines that start Python so that it imports nothing from its working directory.

`python -m` and `python -c` put the working directory first in sys.path, so a `random.py` there would replace
the standard library's and run with the user's rights. `-P` leaves it out; a child that cannot get the option
gets the environment variable (`SAFE_ENVIRONMENT`). Empty and relative entries of PATH and PYTHONPATH also
mean the working directory: `absolute_entries` drops them.
"""

import os
import sys
from collections.abc import Sequence

SAFE_PATH = "-P"
SAFE_ENVIRONMENT = {"PYTHONSAFEPATH": "1"}
"""For a Python that another program starts, such as Spark's workers (Python 3.11 and later)."""
ISOLATED = "-I"
"""For programs that need only the standard library, also on a Python without `-P`."""


def python_command(
    module: str, *arguments: str, python: str = sys.executable, options: Sequence[str] = ()
) -> list[str]:
    """Return the argument list that runs a module of Cutset. options: more interpreter options."""
    return [python, SAFE_PATH, *options, "-m", module, *arguments]


def program_command(program: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """Return the argument list that runs program text which imports only the standard library."""
    return [python, ISOLATED, "-c", program, *arguments]


def absolute_entries(path: str) -> str:
    """Return a search path, such as PATH or PYTHONPATH, without relative and empty entries."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))
