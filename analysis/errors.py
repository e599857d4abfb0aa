"""The analysis' errors: what was being done, with which input, and what to do, in one line for the CLI to
print."""


class AnalysisError(Exception):
    """The analysis cannot go on with what it was given."""


class CaptureError(AnalysisError):
    """A capture file cannot be used at all: missing, unreadable, or no capture."""
