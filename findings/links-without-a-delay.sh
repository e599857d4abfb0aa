#!/bin/sh
# A GraphML topology lacks the delay of one link. NetworkX and igraph look for the shortest path by delay.
#
# Packages: networkx==3.6.1, igraph==1.0.0
# Guess: both refuse, or both leave the link out.
# Seen: NetworkX counts the missing delay as 1, so the gap becomes the best way; igraph refuses.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: networkx==3.6.1 igraph==1.0.0
venv/bin/python - <<'EOF'
import igraph
import networkx as nx

graph = nx.Graph()
graph.add_edge("a", "b", delay=20.0)
graph.add_edge("b", "d", delay=20.0)
graph.add_edge("a", "c", delay=25.0)
graph.add_edge("c", "d")
nx.write_graphml(graph, "net.graphml")
read = nx.read_graphml("net.graphml")
path, length = nx.dijkstra_path(read, "a", "d", "delay"), nx.dijkstra_path_length(read, "a", "d", "delay")
print("networkx:", path, length)
assert (path, length) == (["a", "c", "d"], 26)
other = igraph.Graph.Read_GraphML("net.graphml")
try:
    other.distances(0, weights="delay")
except igraph.InternalError as error:
    print("igraph:", error)
    assert "NaN" in str(error)
else:
    raise AssertionError("igraph found a way")
EOF
