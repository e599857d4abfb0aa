#!/bin/sh
# NetworkX writes a topology as GML, whose links have their rates in bits per second. NetworkX and igraph read
# it.
#
# Packages: networkx==3.6.1, igraph==1.0.0
# Guess: both read the integers that were written.
# Seen: integers beyond 31 bits are written in quotation marks, so NetworkX reads 1 Gbit/s as a number and
#   10 Gbit/s as text, and igraph reads all rates as text if one is that large. A sum of rates then fails,
#   and a comparison compares letters.
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
graph.add_edge("a", "b", rate=1_000_000_000)
graph.add_edge("b", "c", rate=10_000_000_000)
nx.write_gml(graph, "net.gml")
own = [rate for *_, rate in nx.read_gml("net.gml").edges(data="rate")]
print("networkx:", own)
slow, fast = own
assert (slow, fast) == (1_000_000_000, "10000000000")
rates = igraph.Graph.Read_GML("net.gml").es["rate"]
print("igraph:", rates)
assert sorted(rates) == ["1000000000", "10000000000"]
EOF
