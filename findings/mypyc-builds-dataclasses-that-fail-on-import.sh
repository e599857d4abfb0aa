#!/bin/sh
# Messages of a protocol as slotted dataclasses, plain and compiled.
#
# Packages: mypy==2.4.1 (mypyc), setuptools==84.2.1; a C compiler
# Guess: what mypyc compiles without an error can be imported as the plain module can.
# Seen: all four modules work in plain Python and compile without an error. Compiled, only the first can be imported: a generic frozen
# dataclass with slots raises AttributeError (`__dict__` is not writable), a bare ClassVar counts as a field with a default (TypeError),
# and a decorator marked by `dataclass_transform` raises AttributeError.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mypy==2.4.1 setuptools==84.2.1
cat >plain.py <<'PYTHON'
from dataclasses import dataclass


@dataclass(slots=True)
class Heartbeat:
    number: int
    late: bool = False
PYTHON
cat >generic.py <<'PYTHON'
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sent(Generic[T]):
    message: T
PYTHON
cat >constant.py <<'PYTHON'
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Peer:
    reads: ClassVar = ("id",)
    id: int
PYTHON
cat >decorator.py <<'PYTHON'
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform()
def message(cls: type[T]) -> type[T]:
    return cls
PYTHON
try() {
	venv/bin/python -c "import $1" 2>error && echo imported || tail -1 error | cut -d: -f1
}
seen=""
for module in plain generic constant decorator; do
	before=$(try $module)
	venv/bin/mypyc $module.py >$module.log 2>&1
	after=$(try $module)
	echo "$module: $before, compiled: $after"
	seen="$seen $before/$after"
done
test "$seen" = " imported/imported imported/AttributeError imported/TypeError imported/AttributeError"
