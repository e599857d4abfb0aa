"""What the dynamic loader maps of a shared object, without what only debuggers read.

Compiled Python modules often come with debugging sections, which are most of their bytes. The loader goes by
the program headers alone, so all that is behind the last segment can go, together with the table of sections
that would point there. Source: elf(5).
"""

import struct

MAGIC = b"\x7fELF"
CLASS_64, LITTLE_ENDIAN = 2, 1
PT_LOAD = 1
PROGRAM_HEADERS = struct.Struct("<32xQ14xHH")  # of Elf64_Ehdr: e_phoff, e_phentsize, e_phnum
SEGMENT = struct.Struct("<I4xQ16xQ")  # of Elf64_Phdr: p_type, p_offset, p_filesz
HEADER_BYTES = 64
SECTIONS_OFFSET = slice(40, 48)  # e_shoff
SECTIONS_COUNT = slice(58, 64)  # e_shentsize, e_shnum, e_shstrndx


def loadable_part(content: bytes) -> bytes:
    """The shared object without sections; as it is if it is of another kind than 64-bit little-endian ELF."""
    if len(content) < HEADER_BYTES or content[:6] != MAGIC + bytes((CLASS_64, LITTLE_ENDIAN)):
        return content
    table, size, count = PROGRAM_HEADERS.unpack_from(content)
    ends = [table + size * count]
    for number in range(count):
        kind, offset, file_bytes = SEGMENT.unpack_from(content, table + size * number)
        if kind == PT_LOAD:
            ends.append(offset + file_bytes)
    part = bytearray(content[: max(ends)])
    for field in (SECTIONS_OFFSET, SECTIONS_COUNT):
        part[field] = bytes(field.stop - field.start)
    return bytes(part)
