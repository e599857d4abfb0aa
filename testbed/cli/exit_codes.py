"""The exit codes of `cutset`."""

FINE = 0
FAILED = 1  # an expectation or the fidelity failed
BAD_INPUT = 2
MACHINE = 3  # it cannot do what was asked
INTERRUPTED = 130


def of(error: Exception) -> int | None:
    """What an error of ours ends with; None for one that is a defect."""
    from analysis.errors import AnalysisError
    from testbed.errors import MachineError, TestbedError
    from topologies.errors import InputError

    codes = {InputError: BAD_INPUT, MachineError: MACHINE, TestbedError: FAILED, AnalysisError: FAILED}
    return next((code for kind, code in codes.items() if isinstance(error, kind)), None)
