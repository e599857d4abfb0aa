"""The example in the docstring of `experiments.faults` is a new kind of fault without any other change."""

import subprocess
import sys
import textwrap

import experiments.faults

USE = """
import experiments.faults, sys
experiments.faults.__path__.append(sys.argv[1])
from experiments.schema import experiment_schema
from testbed.cli import main
from testbed.shell.fault_commands import fault_documents

fault = "{name: spike, at: 5s, for: 2s, jitter_spike: [r2, r3], delay: 80ms}"
given = ["plan", "link-failure", "--set", f"faults=[{fault}]", "--set", "expect=[]"]
main.run(given)
print(fault_documents("jitter_spike", "r2 r3 delay 80ms for 2s", {}))
print("JitterSpike" in experiment_schema()["$defs"])
"""


def test_the_example_is_a_kind_of_fault(tmp_path):
    lines = (experiments.faults.__doc__ or "").splitlines()
    first, *_, last = (number for number, line in enumerate(lines) if line.startswith("    "))
    assert last - first < 25
    (tmp_path / "jitter_spike.py").write_text(textwrap.dedent("\n".join(lines[first : last + 1])))
    done = subprocess.run(
        [sys.executable, "-c", USE, tmp_path], capture_output=True, text=True, check=True
    ).stdout
    words = " ".join(done.split())
    assert "5.000 s spike r2-r3 up: delay 80ms, jitter 40ms" in words
    assert "7.000 s spike r2-r3 up " in words
    assert words.endswith("[{'jitter_spike': ['r2', 'r3'], 'delay': '80ms', 'for': '2s'}] True")
