"""A sandbox: namespaces of a run's own, in which one command runs, and which die with it."""

from testbed.sandbox.outside import Sandbox, run_in_sandbox

__all__ = ["Sandbox", "run_in_sandbox"]
