# SPDX-License-Identifier: GPL-2.0-only
"""Read BTF, the running kernel's type information: offsets of members, and values of enumerators.

A header, types one after the other, strings. A type is u32 name, u32 info (kind in bits 24 to 28,
number of parts in bits 0 to 15), u32 size or type, then data of its kind. Source:
Documentation/bpf/btf.rst.
"""

import struct
from collections.abc import Collection
from dataclasses import dataclass

_HEADER = struct.Struct("<HBBIIIII")
_MAGIC = 0xEB9F
_TYPE = struct.Struct("<III")
_MEMBER = struct.Struct("<III")
_ENUMERATOR = struct.Struct("<II")

_STRUCT, _ENUM, _TYPEDEF = 4, 6, 8
# Bytes after a type, and bytes for each of its parts, by kind: kinds 1 to 19.
_FIXED = {1: 4, 3: 12, 14: 4, 17: 4}
_EACH = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
_MOST_KINDS = 19
_BITFIELDS = 1 << 31  # in info: the high byte of a member's offset is its width


class BtfError(ValueError):
    """Not BTF, of an unknown byte order or kind, or without a requested type."""


@dataclass(frozen=True)
class Types:
    """structs: name -> member -> offset in bytes, without bit fields. enumerators: name -> value,
    of the requested enums. typedefs: name -> id of the type."""

    structs: dict[str, dict[str, int]]
    enumerators: dict[str, int]
    typedefs: dict[str, int]

    def offset(self, struct_name: str, member: str) -> int:
        """Return the offset of a member. Raises BtfError: there is no such member."""
        try:
            return self.structs[struct_name][member]
        except KeyError:
            raise BtfError(f"the kernel's struct {struct_name} has no {member}") from None

    def number(self, enumerator: str) -> int:
        """Return the value of an enumerator. Raises BtfError: there is no such enumerator."""
        try:
            return self.enumerators[enumerator]
        except KeyError:
            raise BtfError(f"the kernel has no {enumerator}") from None

    def typedef(self, name: str) -> int:
        """Return the type id of a typedef. Raises BtfError: there is no such typedef."""
        try:
            return self.typedefs[name]
        except KeyError:
            raise BtfError(f"the kernel has no {name}") from None


def read_types(
    data: bytes, structs: Collection[str], enums: Collection[str], typedefs: Collection[str]
) -> Types:
    """Return the named structures, enums and typedefs; omit those that do not exist.

    Raises:
        BtfError: the data are damaged.
    """
    try:
        return _read(data, structs, enums, typedefs)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise BtfError(f"damaged type information: {error}") from None


def _read(
    data: bytes, structs: Collection[str], enums: Collection[str], typedefs: Collection[str]
) -> Types:
    magic, _, _, header, types_at, types_len, strings_at, strings_len = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise BtfError("no type information, or of another byte order")
    strings = data[header + strings_at : header + strings_at + strings_len]

    def name(at: int) -> str:
        end = strings.find(b"\0", at)
        if at >= len(strings) or end < 0:
            raise BtfError("damaged type information: a name is outside")
        return strings[at:end].decode()

    # Select by the name's offset: comparing numbers is faster than reading 130,000 names.
    wanted = {_place(strings, text): (text, _STRUCT) for text in structs}
    wanted |= {_place(strings, text): (text, _ENUM) for text in enums}
    wanted |= {_place(strings, text): (text, _TYPEDEF) for text in typedefs}
    found: dict[str, dict[str, int]] = {}
    numbers: dict[str, int] = {}
    ids: dict[str, int] = {}
    number_of_type = 0
    at, end = header + types_at, header + types_at + types_len
    if end > len(data):
        raise BtfError("damaged type information: it is cut short")
    unpack = _TYPE.unpack_from
    while at < end:
        where, info, _ = unpack(data, at)
        number_of_type += 1
        kind, count = info >> 24 & 0x1F, info & 0xFFFF
        if not 0 < kind <= _MOST_KINDS:
            raise BtfError(f"type information of an unknown kind, {kind}")
        body = at + _TYPE.size
        at = body + _FIXED.get(kind, 0) + _EACH.get(kind, 0) * count
        if where not in wanted or wanted[where][1] != kind or at > end:
            continue
        if kind == _STRUCT:
            found[name(where)] = {
                name(member): bits // 8
                for member, _, bits in _MEMBER.iter_unpack(data[body:at])
                if not (info & _BITFIELDS and bits >> 24) and bits % 8 == 0
            }
        elif kind == _TYPEDEF:
            ids[name(where)] = number_of_type
        else:
            numbers |= {
                name(member): number for member, number in _ENUMERATOR.iter_unpack(data[body:at])
            }
    return Types(found, numbers, ids)


def _place(strings: bytes, text: str) -> int:
    """Return the offset of a name; -1 if it is absent."""
    at = strings.find(b"\0" + text.encode() + b"\0")
    return at + 1 if at >= 0 else -1
