"""The testbed's errors. Each says what was being done, with which input, and what to do, in one line."""


class TestbedError(Exception):
    """Something in the testbed went wrong while it ran."""

    __test__ = False  # pytest would take the name for a test class


class MachineError(TestbedError):
    """This machine cannot do what was asked (exit code 3): it says what is missing and how to get it."""
