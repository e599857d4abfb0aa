"""`python -m tests.hunt.fault_free SYSTEM FOLDER` prints what did not hold, and ends with 1 if anything."""

import sys
from pathlib import Path

from tests.hunt.fault_free import broken_expectations

broken = broken_expectations(sys.argv[1], Path(sys.argv[2]))
sys.stdout.writelines(f"{each}\n" for each in broken)
sys.exit(bool(broken))
