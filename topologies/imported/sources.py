"""The readers of networks: by the name of a package's network, or by the ending of a file."""

import hashlib
from pathlib import Path

from topologies.bounded_files import decoded, read_bounded
from topologies.document import shown_path
from topologies.errors import InputError
from topologies.imported.attributes import network_of
from topologies.imported.containerlab import read_containerlab
from topologies.imported.gml import read_gml
from topologies.imported.graphml import read_graphml
from topologies.imported.network import Network
from topologies.imported.sndlib import read_sndlib
from topologies.imported.topohub import PREFIX, packaged, read_topohub
from topologies.xml_text import parsed_xml

BYTES_MAX = 16 << 20
ENDINGS = ".json (TopoHub), .gml (Topology Zoo, Shadow), .graphml, .xml (SNDlib), .clab.yml (containerlab)"


def read_network(source: str) -> Network:
    """Read `topohub:GROUP/NAME` or a file. Raises InputError with the source."""
    if source.startswith(PREFIX):
        content, origin = packaged(source)
        return read_topohub(content, source, origin.split(" ")[0].rpartition("/")[2], origin)
    path = Path(source)
    file, name = shown_path(path), path.name.partition(".")[0]
    content = read_bounded(path, file, BYTES_MAX)
    origin = f"{path.name}, SHA-256 {hashlib.sha256(content).hexdigest()[:16]}"
    match path.suffix.lower():
        case ".json":
            return read_topohub(content, file, name, origin)
        case ".gml":
            return network_of(read_gml(decoded(content, file), file), file, name, origin)
        case ".graphml" | ".xml":
            return _from_xml(content, file, name, origin)
        case ".yaml" | ".yml":
            return read_containerlab(decoded(content, file), file, name, origin)
    raise InputError(file, None, "", f"should end in {ENDINGS}; or give topohub:GROUP/NAME")


def _from_xml(content: bytes, file: str, name: str, origin: str) -> Network:
    root = parsed_xml(content, file)
    match root.tag.rpartition("}")[2]:
        case "graphml":
            return network_of(read_graphml(root, file), file, name, origin)
        case "network":
            return read_sndlib(root, file, name, origin)
    raise InputError(file, None, "", "is neither GraphML (root element graphml) nor of SNDlib (network)")
