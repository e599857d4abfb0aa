"""Small networks in each format: Bern, Zürich and Milano, about 95 and 218 km apart, and more."""

ZOO_GML = """
Creator "tests"
graph [
  directed 0
  Network "Alps"
  node [ id 0 label "Bern" Longitude 7.45 Latitude 46.95 Internal 1 ]
  node [ id 1 label "Z&#252;rich" Longitude 8.55 Latitude 47.37 ]
  node [ id 2 label "Milano" Longitude 9.19 Latitude 45.46 ]
  node [ id 3 label "None" hyperedge 1 ]
  node [ id 4 label "Oslo" Longitude 10.75 Latitude 59.91 ]
  edge [ source 0 target 1 LinkSpeed "2.5" LinkSpeedUnits "G" LinkSpeedRaw 2500000000.0 ]
  edge [ source 1 target 2 LinkLabel "10-20 Gbps" ]
  edge [ source 2 target 1 ]
  edge [ source 2 target 2 ]
  edge [ source 0 target 2 LinkNote "Planned for 2012" ]
  edge [ source 0 target 3 ]
]
"""

ZOO_GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Latitude" attr.type="double" for="node" id="d0"/>
  <key attr.name="Longitude" attr.type="double" for="node" id="d1"/>
  <key attr.name="label" attr.type="string" for="node" id="d2"/>
  <key attr.name="LinkSpeed" attr.type="string" for="edge" id="d3"/>
  <key attr.name="LinkSpeedUnits" attr.type="string" for="edge" id="d4"><default>G</default></key>
  <key attr.name="Network" attr.type="string" for="graph" id="d5"/>
  <graph edgedefault="undirected">
    <data key="d5">Alps</data>
    <node id="0"><data key="d0">46.95</data><data key="d1">7.45</data><data key="d2">Bern</data></node>
    <node id="1"><data key="d0">47.37</data><data key="d1">8.55</data><data key="d2">Z\u00fcrich</data></node>
    <node id="2"><data key="d0">45.46</data><data key="d1">9.19</data><data key="d2">Milano</data></node>
    <edge source="0" target="1"><data key="d3">2.5</data></edge>
    <edge source="1" target="2"/>
  </graph>
</graphml>
"""

TOPOHUB = """{"directed": false, "multigraph": false, "graph": {"name": "Alps", "demands": {}}, "nodes": [
  {"id": 0, "name": "Bern", "pos": [7.45, 46.95]}, {"id": 1, "name": "Z\u00fcrich", "pos": [8.55, 47.37]},
  {"id": 2, "name": "Milano", "pos": [9.19, 45.46]}],
  "edges": [{"source": 0, "target": 1, "dist": 95.0}, {"source": 1, "target": 2, "dist": 218.0}]}
"""

PIXELS = """{"graph": {}, "nodes": [{"id": 0, "pos": [56.0, 31.0]}, {"id": 1, "pos": [516.0, 466.0]}],
  "edges": [{"source": 0, "target": 1}]}
"""

WHOLE_NUMBERS = PIXELS.replace("516", "48").replace("466", "49")

SNDLIB = """<?xml version="1.0" encoding="ISO-8859-1"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
  <meta><unit>MBITPERSEC</unit></meta>
  <networkStructure>
    <nodes coordinatesType="geographical">
      <node id="Bern"><coordinates><x>7.45</x><y>46.95</y></coordinates></node>
      <node id="Z&#252;rich"><coordinates><x>8.55</x><y>47.37</y></coordinates></node>
      <node id="Milano"><coordinates><x>9.19</x><y>45.46</y></coordinates></node>
    </nodes>
    <links>
      <link id="L1"><source>Bern</source><target>Z&#252;rich</target>
        <preInstalledModule><capacity>2500.0</capacity><cost>0.0</cost></preInstalledModule></link>
      <link id="L2"><source>Z&#252;rich</source><target>Milano</target></link>
    </links>
  </networkStructure>
</network>
"""

SHADOW = """graph [
  directed 1
  node [ id 0 label "Bern" host_bandwidth_up "100 Mbit" host_bandwidth_down "1 Gbit" ]
  node [ id 1 label "Z&#252;rich" host_bandwidth_up "81920 Kibit" ]
  edge [ source 0 target 0 latency "1 ms" ]
  edge [ source 0 target 1 latency "10 ms" jitter "500 us" packet_loss 0.01 ]
  edge [ source 1 target 0 latency "0.012 s" packet_loss 0.0 ]
]
"""

CONTAINERLAB = """name: alps
topology:
  defaults: {kind: linux}
  nodes:
    bern: {image: frr}
    zuerich:
    milano: {kind: bridge}
  links:
    - endpoints: ["bern:eth1", "zuerich:eth1"]
    - type: veth
      endpoints: [{node: zuerich, interface: eth2}, {node: milano, interface: eth1}]
    - endpoints: ["bern:eth2", "host:veth7"]
    - {type: mgmt-net, endpoint: {node: bern, interface: eth3}, host-interface: veth8}
"""
