"""Start of pyarrow without pandas, which it otherwise imports, in 0.2 s, with its first value."""

import sys
from importlib.machinery import ModuleSpec

import pyarrow as pa


class _NoPandas:
    """Finds no pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Raise ModuleNotFoundError for pandas; leave other modules to the next finder."""
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return None


def keep_pandas_out() -> None:
    """Let pyarrow try to import pandas in vain, once. `to_pandas` and the user's own imports still find it.

    For commands, which make no arrays from pandas' objects.
    """
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.scalar(None)
    finally:
        sys.meta_path.remove(_NoPandas)
