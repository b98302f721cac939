# SPDX-License-Identifier: GPL-2.0-only
"""The script of a run, made of typed words.

A study is untrusted input. A `str` is always a literal: only quote() renders it, and it always
quotes. Shell syntax is a member of a Form, an enumeration, which no text can become at run time; a
Form's holes take words and statements.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

# A word that needs no quotes, as in shlex, or a character that is usually left bare.
_BARE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_OPTION = re.compile(r"--[A-Za-z][A-Za-z0-9_-]*=", re.ASCII)
_PROGRAM = re.compile(r"[\w./-]+|:|\[", re.ASCII)
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
# Characters that the shell interprets in double quotes and here documents.
_SPECIAL = re.compile(r'[\\$`"]')
_HOLE = re.compile(r"(?<!\$)\{([a-z]+)\}")
_END = "EOF"

# The shell's reserved words, which a program must not be called.
_RESERVED = (
    *("case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select"),
    *("then", "time", "until", "while"),
)
# Files of a cgroup with a line per device, which begins with its number.
PER_DEVICE = frozenset(
    {
        *("io.cost.model", "io.cost.qos", "io.latency", "io.max"),
        "blkio.throttle.read_bps_device",
    }
)


class Form(Enum):
    """Shell syntax in the code, to be subclassed. "{name}" is a hole, which is outside of quotes. A
    form without holes is a statement or a word."""


@dataclass(frozen=True)
class Quoted:
    """A literal in double quotes."""

    text: str


@dataclass(frozen=True)
class ForDevice:
    """A line for one device: its number, which the script has in $dev, and literal text. It may be
    written only to the files in PER_DEVICE."""

    text: str

    def __str__(self) -> str:
        return f"$dev {self.text}"


@dataclass(frozen=True)
class Variable:
    """The value of a variable with a number, such as a process id. braces: around its name."""

    name: str
    braces: bool = True

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"not the name of a variable: {self.name!r}")


@dataclass(frozen=True)
class Name(Variable):
    """The name of a variable, to assign to."""


DM_MAJOR = Variable("major")
"""Major number of device-mapper's devices, which the script reads before it makes one."""


@dataclass(frozen=True)
class To:
    """Standard output, to a file."""

    path: str


@dataclass(frozen=True)
class Append(To):
    """Standard output, to the end of a file."""


Word = str | int | Quoted | ForDevice | Variable | To | Form


@dataclass(frozen=True)
class Command:
    """A program and its arguments, with its redirections among them."""

    words: tuple[Word, ...]

    def __post_init__(self) -> None:
        program = self.words[0]
        if not isinstance(program, str) or not _is_program(program):
            raise ValueError(f"not a program: {program!r}")
        if ForDevice in map(type, self.words):
            files = [PurePosixPath(word.path).name for word in self.words if isinstance(word, To)]
            if not files or not PER_DEVICE.issuperset(files):
                raise ValueError(f"no line for a device goes to {files}")


@dataclass(frozen=True)
class Here:
    """A command and its here document."""

    command: Command
    lines: tuple[str, ...]

    def __post_init__(self) -> None:
        if _END in self.lines:
            raise ValueError(f"a line ends the document: {_END}")


@dataclass(frozen=True)
class Filled:
    """A form with its holes filled."""

    form: Form
    holes: Mapping[str, "Hole"]

    def __post_init__(self) -> None:
        if set(_HOLE.findall(self.form.value)) != set(self.holes):
            raise ValueError(f"{self.form}: given {sorted(self.holes)}")


Statement = Command | Here | Filled | Form
Hole = Word | Statement | Sequence[Statement]


class Syntax(Form):
    """Shell syntax that several commands use."""

    BREAK = "\\\n "
    DEEP_BREAK = "\\\n   "
    QUIET = "2> /dev/null"
    WITH_ERRORS = "2>&1"


def run(*words: Word) -> Command:
    """Return a command. A `str` is a literal."""
    return Command(words)


def fill(form: Form, **holes: Hole) -> Filled:
    """Fill a form's holes with words, or with statements, each on a line."""
    return Filled(form, holes)


def rows(words: Iterable[Word], mark: Syntax = Syntax.BREAK) -> list[Word]:
    """Return the words, each on its own line."""
    return [part for word in words for part in (mark, word)]


def write(value: str | int | ForDevice, path: str) -> Command:
    """Return a command that writes a line to a file: printf if echo would interpret the text, else
    echo."""
    if isinstance(value, str) and ("\\" in value or re.match("-[A-Za-z]", value)):
        return run("printf", "%s\\n", value, To(path))
    return run("echo", value, To(path))


def render(statements: Iterable[Statement]) -> str:
    """Render the statements as shell, each on a line.

    Raises:
        TypeError: an item is not a statement, such as a `str`.
        ValueError: a literal is not one line of printable text.
    """
    return "\n".join(map(_statement, statements))


def quote(text: str) -> str:
    """Render a literal as a single word, with the fewest quotes.

    Raises:
        ValueError: it is not one line of printable text.
    """
    if _BARE.fullmatch(text):
        return text
    _require_line(text)
    option = _OPTION.match(text)
    start = option[0] if option else ""
    return start + shlex.quote(text.removeprefix(start))


def _statement(statement: Statement) -> str:
    match statement:
        case Command(words):
            return " ".join(map(_word, words))
        case Here(command, lines):
            for line in lines:
                _require_line(line)
            end = f"'{_END}'" if any(map(_SPECIAL.search, lines)) else _END
            return "\n".join((f"{_statement(command)} <<{end}", *lines, _END))
        case Filled(form, holes):
            return _HOLE.sub(lambda hole: _hole(holes[hole[1]], hole), form.value)
        case Form():
            return _fixed(statement)
        case _:
            raise TypeError(f"not a statement: {statement!r}")


def _hole(value: Hole, place: re.Match[str]) -> str:
    if isinstance(value, Command | Here | Filled):
        return _statement(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        line = place.string[: place.start()].rpartition("\n")[2]
        indent = line if line.isspace() else ""
        return f"\n{indent}".join(map(_statement, value))
    return _word(value)


def _word(word: Word) -> str:
    match word:
        case str():
            text = quote(word)
        case Form():
            text = _fixed(word)
        case int():
            text = str(word)
        case Quoted():
            text = f'"{_in_double_quotes(word.text)}"'
        case ForDevice():
            text = f'"$dev {_in_double_quotes(word.text)}"'
        case Name():
            text = word.name
        case Variable():
            text = f"${{{word.name}}}" if word.braces else f"${word.name}"
        case To():
            text = f"{'>>' if isinstance(word, Append) else '>'} {quote(word.path)}"
        case _:
            raise TypeError(f"not a word: {word!r}")
    return text


def _fixed(form: Form) -> str:
    text = str(form.value)
    if _HOLE.search(text):
        raise ValueError(f"{form} has holes")
    return text


def _in_double_quotes(text: str) -> str:
    _require_line(text)
    return _SPECIAL.sub(r"\\\g<0>", text)


def _is_program(word: str) -> bool:
    return bool(_PROGRAM.fullmatch(word)) and word not in _RESERVED


def _require_line(text: str) -> None:
    if not text.isprintable():
        raise ValueError(f"not one line of printable text: {text!r}")
