#!/bin/sh
# A lab's YAML file has the MAC address 52:54:00:12:34:56 without quotation marks. 52:54:00 is the prefix of
# QEMU and libvirt.
#
# Packages: PyYAML==6.0.4, ruamel.yaml==0.19.1
# Guess: it is text.
# Seen: PyYAML reads an integer to the base of 60, as YAML 1.1 has it, if no digit is a letter and no byte
#   exceeds 59; the address that ends with 5a stays text. ruamel.yaml (YAML 1.2) reads text. Of QEMU's
#   addresses about one in eighty is concerned.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: PyYAML==6.0.4 ruamel.yaml==0.19.1
venv/bin/python - <<'EOF'
import yaml
from ruamel.yaml import YAML

text = "nodes: [52:54:00:12:34:56, 52:54:00:12:34:5a]"
one, other = yaml.safe_load(text)["nodes"], YAML(typ="safe", pure=True).load(text)["nodes"]
print("PyYAML:", one, "ruamel.yaml:", other)
assert one == [41135085296, "52:54:00:12:34:5a"]
assert other == ["52:54:00:12:34:56", "52:54:00:12:34:5a"]
EOF
