#!/bin/sh
# NetworkX writes GraphML with an attribute of type long; igraph reads it.
#
# Packages: networkx==3.6.1, igraph==1.0.0
# Guess: igraph reads integers, or refuses those that it cannot hold.
# Seen: igraph reads all numbers as doubles: identifiers beyond 2**53 (data path identifiers of switches,
#   times in nanoseconds) are rounded without a word, and two different ones become equal.
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
graph.add_node("a", dpid=0x00FE_0000_0000_0001)
graph.add_node("b", dpid=0x00FE_0000_0000_0002)
nx.write_graphml(graph, "net.graphml")
assert nx.read_graphml("net.graphml").nodes["a"]["dpid"] == 0x00FE_0000_0000_0001
dpids = igraph.Graph.Read_GraphML("net.graphml").vs["dpid"]
print("igraph:", dpids)
assert len(set(dpids)) == 1
EOF
