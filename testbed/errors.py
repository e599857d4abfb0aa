"""The testbed's errors. Each message states the operation, the input and the remedy in one line."""


class TestbedError(Exception):
    """A failure in the testbed during a run."""

    __test__ = False  # pytest would take the name for a test class


class MachineError(TestbedError):
    """A requirement that this machine does not meet (exit code 3), with how to get what is missing."""
