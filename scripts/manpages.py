# SPDX-License-Identifier: GPL-2.0-only
"""Write a manual page for each command, from the records that its help is made of.

`make man` writes man/isoblk.1, man/isoblk-run.1 and so on. They are not kept in git: unlike the
pages of docs/reference/ nobody reads them there, and whoever installs isoblk makes them.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup

from isoblk import __version__
from isoblk.cli.main import every_command

PAGES = Path(__file__).resolve().parents[1] / "man"
_STATUS = (
    ("0", "What was asked for is done."),
    ("1", "It was asked for rightly, and failed; or, if that was asked, claims do not hold or"
     " figures are worse."),
    ("2", "The command line, a study or another input is wrong, or something is missing on this"
     " machine."),
)  # fmt: skip
_Command = TyperCommand | TyperGroup


def pages(*, lab: bool = True) -> dict[str, str]:
    """The pages' texts, by the names of their files.

    Args:
        lab: whether isoblk(1) tells of the lab's commands.
    """
    every = dict(every_command(lab=lab))
    return {f"{_name(words)}.1": "\n".join(_page(words, every)) + "\n" for words in every}


def _name(words: tuple[str, ...]) -> str:
    return "-".join(("isoblk", *words))


def _page(words: tuple[str, ...], every: dict[tuple[str, ...], _Command]) -> Iterator[str]:
    one = every[words]
    call = " ".join(("isoblk", *words))
    context = typer.Context(one, info_name=call, help_option_names=["-h", "--help"])
    summary, *paragraphs = _paragraphs(one.help or "")
    yield '.\\" Made by `make man`.'
    yield f'.TH {_name(words).upper()} 1 "" "isoblk {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"{_text(_name(words))} \\- {_text(_first(summary))}"
    yield ".SH SYNOPSIS"
    yield f".B {_text(call)}"
    yield _text(" ".join(one.collect_usage_pieces(context)))
    yield ".SH DESCRIPTION"
    for number, paragraph in enumerate((summary, *paragraphs)):
        if number:
            yield ".PP"
        yield _text(paragraph)
    options, arguments = [], []
    for param in one.get_params(context):
        record = param.get_help_record(context)
        if record:
            (options if param.param_type_name == "option" else arguments).append(record)
    for title, records in (("ARGUMENTS", arguments), ("OPTIONS", options)):
        if records:
            yield f".SH {title}"
            yield from _list(records)
    if isinstance(one, TyperGroup):
        yield ".SH COMMANDS"
        for name, listed in one.commands.items():
            if listed.hidden:
                continue
            below = every[*words, name]
            yield ".TP"
            yield f".BR {_text(_name((*words, name)))} (1)"
            yield _text(_first(_paragraphs(below.help or "")[0]) + ".")
    if one.epilog:
        yield ".SH EXAMPLES"
        yield ".EX"
        yield from (_text(line.strip()) for line in one.epilog.splitlines()[2:])
        yield ".EE"
    yield ".SH EXIT STATUS"
    yield from _list(_STATUS)
    if words:
        yield ".SH SEE ALSO"
        yield f".BR {_text(_name(words[:-1]))} (1)"


def _list(records: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, meaning in records:
        yield ".TP"
        yield f".B {_text(term)}"
        yield _text(" ".join(meaning.split()))


def _paragraphs(text: str) -> list[str]:
    return [" ".join(one.split()) for one in re.split(r"\n\s*\n", text.strip())]


def _first(paragraph: str) -> str:
    """The first sentence, without its full stop."""
    return re.split(r"\.(?:\s|$)", paragraph)[0]


def _text(text: str) -> str:
    """A line that roff prints as it is."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main(directory: Path) -> None:
    """Write the pages, and remove those of commands that are no more."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("isoblk*.1"):
        old.unlink()
    for file, content in pages().items():
        (directory / file).write_text(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGES)
