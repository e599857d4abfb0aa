"""The terms of use of a run's data: its licence, and who publishes it."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from topologies.document import Document, validated
from topologies.strict import StrictModel, spelled

_URL = r"https?://[^\s<>\"{}|\\^`]+"
Url = Annotated[str, *spelled(_URL, "a URL, as https://spdx.org/licenses/CC-BY-4.0", 200)]
NameAndUrl = Annotated[str, *spelled(rf"[^<>\s][^<>]* <{_URL}>", "`NAME <URL>`", 200)]


class Publication(StrictModel):
    """The terms of use in archives of the runs (`cutset export`)."""

    license: Url | None = None
    """The URL of the licence of the data, such as https://spdx.org/licenses/CC-BY-4.0."""
    publisher: NameAndUrl | None = None
    """The organisation that made and publishes the data, as `NAME <URL>`."""

    @classmethod
    def of_record(cls, record: Mapping[str, Any], file: str, given: Mapping[str, str | None]) -> Self:
        """Return the terms in a run's record, with the user's values in place of recorded ones. Raises
        InputError.

        record: the plain content of its run.json or sweep.json, which is `file`. given: values of options.
        """
        experiment = record.get("experiment")
        stated = experiment.get("publication") if isinstance(experiment, Mapping) else None
        options = {key: value for key, value in given.items() if value is not None}
        data = {**stated, **options} if isinstance(stated, Mapping) else options
        return validated(cls, Document(file, data, {}, {(key,): f"--{key}" for key in options}))
