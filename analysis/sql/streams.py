"""Tables whose rows are computed whenever a query reads them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TableStream:
    """A table with Arrow's PyCapsule interface. compute: yields its rows."""

    schema: pa.Schema
    compute: Callable[[], Iterator[pa.RecordBatch]]

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self.compute()).__arrow_c_stream__()
