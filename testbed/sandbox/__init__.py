"""A sandbox: separate namespaces in which one command runs and which end with it."""

from testbed.sandbox.outside import Sandbox, run_in_sandbox

__all__ = ["Sandbox", "run_in_sandbox"]
