# SPDX-License-Identifier: GPL-2.0-only
"""Read and check a study file."""

import re
from pathlib import Path
from typing import Any

from isoblk import toml
from isoblk.errors import UserError, is_printed, printable
from isoblk.files import read_text
from isoblk.run.field import Field, FieldError, FieldErrors
from isoblk.run.typed import convert_all
from isoblk.study.check import check_study
from isoblk.study.model import Study
from isoblk.study.presets import HOST
from isoblk.study.scale import scaled
from isoblk.study.text import Source

# Fields of prose, which may have several lines.
_PROSE = frozenset({"description", "source", "text", "title", "why"})
_LAYOUT = str.maketrans("", "", "\n\t")
_TOML_PLACE = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")
# Beginnings of tomllib's messages for text without quotes.
_UNQUOTED = ("Invalid value", "Expected newline")
_QUOTES = 'put text in quotes, as "4k"'


def load_study(path: Path) -> tuple[Study, str]:
    """Return the checked study in a file, and the file's text.

    Raises:
        UserError: the file cannot be read, is not TOML, or is not a valid study; names FILE:LINE,
            the field, the cause and the allowed values, for each mistake (SeveralError).
    """
    text = read_text(path, "the study", next="name a TOML file")
    return parse_study(text, str(path)), text


def parse_study(text: str, name: str) -> Study:
    """Parse a study from text; `name` is the file's, for errors, which are those of
    load_study()."""
    try:
        document = toml.parse(text)
    except ValueError as error:
        raise _syntax_error(str(error), text, name) from None
    source = Source.of(name, text)
    _join_keys(document)
    try:
        _refuse_unprintable(document, ())
        document = scaled(document)
        study = convert_all(document, Study)
        if isinstance(study, FieldErrors):
            raise source.locate_all(study)
        _refuse_host_device(study)
    except FieldError as error:
        raise source.locate(error) from None
    check_study(study, source)
    return study


def _refuse_unprintable(value: object, field: Field) -> None:
    """Check that texts of a study are printable: they are shown in terminals, and in comments of
    scripts. Prose may have several lines."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _refuse_unprintable(key, (*field, printable(key)))
            _refuse_unprintable(inner, (*field, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _refuse_unprintable(inner, (*field, index))
    elif isinstance(value, str):
        lines = value.translate(_LAYOUT) if field and field[-1] in _PROSE else value
        if bad := next((line for line in lines if not is_printed(line)), None):
            raise FieldError(field, f"holds U+{ord(bad):04X}, which is not printed")


def _refuse_host_device(study: Study) -> None:
    named = study.device.get("driver") if isinstance(study.device, dict) else None
    if HOST in (named, *study.matrix.get("device.driver", [])):
        raise FieldError(
            ("device", "driver"),
            "a disk of this machine is not named in a study",
            next="isoblk run --machine host --device /dev/X",
        )


def _syntax_error(message: str, text: str, name: str) -> UserError:
    place = _TOML_PLACE.search(message)
    line = len(text.splitlines())
    if place is not None:
        message = message[: place.start()]
        line = int(place["line"] or line)
    return UserError(
        f"not TOML: {message[:1].lower()}{message[1:]}",
        where=f"{name}:{line}",
        next=_QUOTES if message.startswith(_UNQUOTED) else "",
    )


def _join_keys(document: dict[str, Any]) -> None:
    """Convert `workload.rw = [...]` in [matrix], `where` and `than` to "workload.rw" = [...].

    Without the quotes, TOML parses the dotted names as tables; these tables have no subtables.
    """
    if isinstance(document.get("matrix"), dict):
        document["matrix"] = _flat(document["matrix"])
    compare = document.get("compare")
    series = compare.get("series") if isinstance(compare, dict) else None
    for entries in (document.get("claim"), series):
        for entry in entries if isinstance(entries, list) else []:
            for name in ("where", "than") if isinstance(entry, dict) else ():
                if isinstance(entry.get(name), dict):
                    entry[name] = _flat(entry[name])


def _flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[before + key] = value
    return flat
