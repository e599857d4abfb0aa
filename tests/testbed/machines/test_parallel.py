"""Parallel calls for many machines: none delays another, nor an interrupt."""

import signal
import subprocess
import sys
import threading

import pytest

from testbed.errors import MachineError, TestbedError
from testbed.machines.parallel import all_or_raise, on_each

WAITS_FOR_EVER = """\
import os, signal, threading
from testbed.machines.parallel import on_each
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever was inherited

def wait(number):
    os.write(1, f"{number} waits\\n".encode())  # at once: print writes the line and its end apart
    threading.Event().wait()

on_each(wait, range(2))
"""


def test_results_and_errors_are_in_the_order_of_the_items() -> None:
    meeting = threading.Barrier(3)

    def do(number: int) -> int:
        meeting.wait(20)  # all wait until all have begun
        if number == 1:
            raise TestbedError("h1: is broken")
        return number

    first, second, third = on_each(do, range(3))
    assert (first, third) == (0, 2)
    assert isinstance(second, TestbedError)


def test_an_unexpected_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        on_each(lambda number: 1 // number, range(2))


def test_one_interrupt_ends_a_command_whose_machines_keep_it_waiting() -> None:
    command = [sys.executable, "-c", WAITS_FOR_EVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert {process.stdout.readline() for _ in range(2)} == {"0 waits\n", "1 waits\n"}
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert said.rstrip().endswith("KeyboardInterrupt")


def test_the_error_has_all_messages_and_machine_errors_take_precedence() -> None:
    with pytest.raises(MachineError, match="one; two"):
        all_or_raise([1, TestbedError("one"), MachineError("two")])
    assert all_or_raise([1, 2]) == [1, 2]
