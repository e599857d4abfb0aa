"""No module of ours imports itself by way of others, not even within a function or only for its types."""

from graphlib import TopologicalSorter

import grimp

PACKAGES = ("analysis", "experiments", "node", "systems", "testbed", "topologies")


def test_imports_run_in_no_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imported).prepare()  # raises CycleError, with the circle in it
