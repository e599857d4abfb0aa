#!/bin/sh
# A class of compiled protocol code keeps its column in a private field named `_attribute`.
#
# Packages: mypy==2.4.1 (mypyc), setuptools==84.2.1; a C compiler
# Guess: mypyc compiles the class, whatever its fields are called.
# Seen: the field `_column` compiles. For `_attribute` mypyc writes a member `__attribute` into a C structure, which is a keyword of
# gcc, and the C compiler refuses it.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mypy==2.4.1 setuptools==84.2.1
for field in column attribute; do
	cat >"of_$field.py" <<-PYTHON
		class Reader:
		    def __init__(self, name: str) -> None:
		        self._$field = name
	PYTHON
	if venv/bin/mypyc "of_$field.py" >"$field.log" 2>&1; then seen=compiled; else seen=refused; fi
	echo "_$field: $seen"
	echo "$seen" >"$field.seen"
done
grep "error:.*expected" attribute.log | head -1
test "$(cat column.seen) $(cat attribute.seen)" = "compiled refused"
