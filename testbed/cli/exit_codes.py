"""The exit codes of `cutset`."""

FINE = 0
FAILED = 1  # an expectation or the fidelity failed
BAD_INPUT = 2
MACHINE = 3  # it cannot do what was asked
INTERRUPTED = 130
