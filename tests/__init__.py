"""Tests of the sources: a compiled copy of the nodes (`make native`) is not used, also not by processes that
tests start.
"""

import os

os.environ["CUTSET_PLAIN"] = "1"
