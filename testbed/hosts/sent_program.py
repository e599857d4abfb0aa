"""Programs that go with the command that starts them, to machines that have nothing of ours yet.

A program is modules of ours that need the standard library alone. On the machine each is made under its own
name before the next, which may import it; the last one runs as `__main__` (cf. `python3 -c`).
"""

import inspect
from types import ModuleType

BEGINNING = """\
import sys, types
def made(name, source):
    parts = name.split(".")
    for end in range(1, len(parts)):
        parent = sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
        parent.__path__ = []
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
"""


def sent_program(*modules: ModuleType) -> str:
    """The text for `python3 -c` of these modules; the last one is the main one, imported ones come before."""
    *imported, main = modules
    made = [f"made({module.__name__!r}, {inspect.getsource(module)!r})" for module in imported]
    return "\n".join([BEGINNING, *made, f"exec(compile({inspect.getsource(main)!r}, 'sent', 'exec'))"])
