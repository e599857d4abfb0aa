"""Keeps pyarrow from importing pandas, which it does with its first value, and which takes 0.2 s."""

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
    """Let pyarrow's only attempt to import pandas fail.

    `to_pandas` and other imports still find pandas. pyarrow then takes missing values of pandas' objects for
    NaN: commands make no arrays from such objects.
    """
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.scalar(None)
    finally:
        sys.meta_path.remove(_NoPandas)
