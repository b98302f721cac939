# SPDX-License-Identifier: GPL-2.0-only
"""Convert a decoded document to a typed one, with errors for the user."""

import re
import threading
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union

import msgspec

from isoblk.run.field import Field, FieldError, FieldErrors, dotted, nearest, suggest

StructT = TypeVar("StructT", bound=msgspec.Struct)

_MISSING = "missing"
_UNKNOWN = "unknown field"
_BUILDING = threading.Lock()
_MESSAGE = re.compile(r"(?P<cause>.*?)(?: - at `\$?(?P<path>[^`]*)`)?", re.DOTALL)
_PATH_PART = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`")
_QUOTED = re.compile(r"[`'](?P<word>.*)[`']", re.DOTALL)
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def convert(document: Mapping[str, Any], kind: type[StructT]) -> StructT:
    """Convert a decoded TOML document to a struct.

    Raises:
        FieldError: unknown or missing field, wrong type, or a word that is not allowed.
    """
    try:
        return build(document, kind)
    except msgspec.ValidationError as error:
        raise _explain(str(error), kind, document) from None


def convert_all(document: Mapping[str, Any], kind: type[StructT]) -> StructT | FieldErrors:
    """Convert as convert() does. Returns every wrong field, if there are any: a field is left out
    once it has been found wrong."""
    errors = FieldErrors()
    rest: Any = document
    while True:
        try:
            found = convert(rest, kind)
        except FieldError as error:
            if not (errors.inside(error.field) or _is_misspelt(error, errors)):
                errors.add(error)
            place = error.field
            # Of a list all is left out: other entries keep their numbers.
            while place and isinstance(place[-1], int):
                place = place[:-1]
            rest = _without_inside(rest, place) if place else None
            if errors.full or rest is None:
                return errors
        else:
            return errors or found


def _is_misspelt(error: FieldError, errors: FieldErrors) -> bool:
    """Return whether a missing field is there under a similar name, which is the mistake."""
    table, name = error.field[:-1], error.field[-1]
    return error.cause == _MISSING and any(
        one.cause == _UNKNOWN
        and one.field[:-1] == table
        and nearest(str(one.field[-1]), [str(name)])
        for one in errors
    )


def without(struct: StructT, field: Field) -> StructT | None:
    """Return a copy in which the field has its default; None if it has none."""
    name, inner = field[0], field[1:]
    if not isinstance(name, str) or name not in struct.__struct_fields__:
        return None
    if not inner:
        default = next(one for one in msgspec.structs.fields(struct) if one.name == name)
        if default.default is not msgspec.NODEFAULT:
            return msgspec.structs.replace(struct, **{name: default.default})
        if default.default_factory is not msgspec.NODEFAULT:
            return msgspec.structs.replace(struct, **{name: default.default_factory()})
        return None
    rest = _without_inside(getattr(struct, name), inner)
    return None if rest is None else msgspec.structs.replace(struct, **{name: rest})


def _without_inside(value: Any, field: Field) -> Any:
    """Return a copy without the field of a struct, a table or a list's entry; None if there is no
    such copy."""
    part, inner = field[0], field[1:]
    if isinstance(value, msgspec.Struct):
        return without(value, field)
    if isinstance(value, dict) and part in value:
        if not inner:
            return {key: one for key, one in value.items() if key != part}
        rest = _without_inside(value[part], inner)
        return None if rest is None else value | {part: rest}
    if isinstance(value, list) and isinstance(part, int) and inner:
        rest = _without_inside(value[part], inner)
        return None if rest is None else [*value[:part], rest, *value[part + 1 :]]
    return None


def build(document: Mapping[str, Any], kind: type[StructT], *, str_keys: bool = False) -> StructT:
    """Convert as msgspec.convert() does, one thread at a time.

    At its first use of a type msgspec caches the type's fields, and a concurrent conversion sees
    the incomplete cache: it ends with a segmentation fault.

    Raises:
        msgspec.ValidationError: the document is not of that type.
    """
    with _BUILDING:
        return msgspec.convert(document, kind, str_keys=str_keys)


def decode(data: bytes, kind: type[StructT]) -> StructT:
    """Decode JSON as msgspec.json.decode() does, one thread at a time: see build().

    Raises:
        msgspec.DecodeError: the data are not JSON.
        msgspec.ValidationError: the data are not of that type.
    """
    with _BUILDING:
        return msgspec.json.decode(data, type=kind)


def _explain(message: str, kind: type[msgspec.Struct], document: Mapping[str, Any]) -> FieldError:
    match = _MESSAGE.fullmatch(message)
    assert match is not None  # the pattern matches any text
    cause, field = match["cause"], _field(match["path"] or "", kind, document)
    quoted = _QUOTED.search(cause)
    word = quoted["word"] if quoted else ""
    if cause.startswith("Object contains unknown field"):
        return FieldError(
            (*field, word), _UNKNOWN, next=suggest(word, _field_names(_type_at(kind, field)))
        )
    if cause.startswith("Object missing required field"):
        return FieldError((*field, word), _MISSING)
    if cause.startswith("Invalid enum value"):
        return FieldError(
            field, f"unknown value {word!r}", next=suggest(word, _choices(_type_at(kind, field)))
        )
    if expected := _EXPECTED.match(cause):
        wanted = " or ".join(_WORDS.get(w, w) for w in _sorted(expected["wanted"].split(" | ")))
        got = _WORDS.get(expected["got"], expected["got"])
        entries = (expected["wanted"], expected["got"]) == ("array", "object")
        return FieldError(
            field,
            f"expected {wanted}, got {got}",
            next=f"write [[{dotted(field)}]]" if entries else "",
        )
    return FieldError(field, cause[:1].lower() + cause[1:])


def _sorted(words: list[str]) -> list[str]:
    """Return the names of types without `int` next to `float`, which includes it."""
    return [word for word in words if not (word == "int" and "float" in words)]


def _field(path: str, kind: type[msgspec.Struct], document: Mapping[str, Any]) -> Field:
    """Convert msgspec's path to a field. Its [...] stands for a key of a table: the first whose
    value is wrong."""
    field: Field = ()
    at: Any = document
    for part in _PATH_PART.finditer(path):
        if part["index"] == "...":
            wanted = _type_at(kind, (*field, ""))
            key: str | int | None = next((k for k in at if not _is_a(at[k], wanted)), None)
            if key is None:
                break
        else:
            key = part["name"] or int(part["index"])
        field, at = (*field, key), at[key]
    return field


def _is_a(value: object, annotation: object) -> bool:
    try:
        with _BUILDING:
            msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return False
    return True


def _type_at(kind: type[msgspec.Struct], field: Field) -> object:
    """Return the annotation of the field; for an optional table or list, that of its value."""
    at: object = kind
    for part in field:
        table = next((one for one in _kinds(at) if typing.get_origin(one) is dict), None)
        if isinstance(part, int):
            at = typing.get_args(at)[0]
        elif table is not None:
            at = typing.get_args(table)[1]
        else:
            at = typing.get_type_hints(at)[part] if isinstance(at, type) else at
        given = _kinds(at)
        if len(given) == 1:
            at = given[0]
    return at


def _kinds(annotation: object) -> list[object]:
    """Return the types of a union but for None; of another annotation itself."""
    if not isinstance(annotation, types.UnionType) and typing.get_origin(annotation) is not Union:
        return [annotation]
    return [arg for arg in typing.get_args(annotation) if arg is not types.NoneType]


def _field_names(struct: object) -> tuple[str, ...]:
    assert isinstance(struct, type) and issubclass(struct, msgspec.Struct)
    return struct.__struct_fields__


def _choices(annotation: object) -> list[str]:
    """Return the words that a Literal, or a union with one, allows."""
    if typing.get_origin(annotation) is Literal:
        return [str(word) for word in typing.get_args(annotation)]
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return [word for arg in typing.get_args(annotation) for word in _choices(arg)]
    return []
