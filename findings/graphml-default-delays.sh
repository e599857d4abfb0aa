#!/bin/sh
# A GraphML file gives links a default delay of 20 (`<default>` of the key); one of two links has its own, 5.
#
# Packages: networkx==3.6.1, igraph==1.0.0
# Guess: both read 20 and 5.
# Seen: igraph does. networkx leaves the first link without a delay and keeps the default as data of the graph, so
# its shortest path counts 1 for that link: 6 instead of 25.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: networkx==3.6.1 igraph==1.0.0 texttable==1.7.0
cat >links.graphml <<'XML'
<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d" for="edge" attr.name="delay" attr.type="double"><default>20.0</default></key>
  <graph edgedefault="undirected">
    <node id="a"/><node id="b"/><node id="c"/>
    <edge source="a" target="b"/>
    <edge source="b" target="c"><data key="d">5.0</data></edge>
  </graph>
</graphml>
XML
venv/bin/python - <<'PYTHON'
import igraph
import networkx

first, second = networkx.read_graphml("links.graphml"), igraph.Graph.Read_GraphML("links.graphml")
seen = {
    "networkx": [first.edges["a", "b"].get("delay"), first.edges["b", "c"]["delay"]],
    "networkx, a to c": networkx.dijkstra_path_length(first, "a", "c", weight="delay"),
    "igraph": second.es["delay"],
    "igraph, a to c": second.distances(0, 2, weights="delay")[0][0],
}
print(seen)
assert seen == {"networkx": [None, 5.0], "networkx, a to c": 6.0, "igraph": [20.0, 5.0], "igraph, a to c": 25.0}
PYTHON
