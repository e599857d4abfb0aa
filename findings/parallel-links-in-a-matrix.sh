#!/bin/sh
# Two regions are joined by two links, of 20 and 40 ms. What is the delay between them?
#
# Packages: networkx==3.6.1, igraph==1.0.0, numpy==2.4.6
# Guess: 20 ms everywhere.
# Seen: shortest paths say 20 in both libraries. networkx's matrix of delays says 60, the sum; its conversion to a
# simple graph and igraph's matrix say 40, the last one.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: networkx==3.6.1 igraph==1.0.0 texttable==1.7.0 numpy==2.4.6
venv/bin/python - <<'PYTHON'
import igraph
import networkx

links = networkx.MultiGraph()
links.add_edge("a", "b", delay=20)
links.add_edge("a", "b", delay=40)
other = igraph.Graph.from_networkx(links)
seen = {
    "networkx path": networkx.dijkstra_path_length(links, "a", "b", weight="delay"),
    "networkx matrix": float(networkx.to_numpy_array(links, weight="delay")[0, 1]),
    "networkx simple graph": networkx.Graph(links).edges["a", "b"]["delay"],
    "igraph path": other.distances(0, 1, weights="delay")[0][0],
    "igraph matrix": other.get_adjacency(attribute="delay")[0][1],
}
print(seen)
assert list(seen.values()) == [20, 60.0, 40, 20, 40]
PYTHON
