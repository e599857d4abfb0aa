"""Tests use the sources of the nodes, and so do the processes that they start, not a copy that `make native`
compiled.
"""

import os

os.environ["CUTSET_PLAIN"] = "1"
