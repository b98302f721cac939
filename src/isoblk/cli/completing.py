# SPDX-License-Identifier: GPL-2.0-only
"""Shell completion of arguments. The shell calls it at each Tab, so it imports little."""

import json
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_MOST = 200  # number of entries of a directory that are examined
_OF_RESULTS = ("runs", "figures", "earlier")  # directories in a result directory
# Appended to the zsh file, so that it completes at the first Tab.
AT_ONCE = '[[ $funcstack[1] = _isoblk ]] && _isoblk_completion "$@"'
# Variable in which join_assignments() stores the key that bash has split off.
_KEY = "_ISOBLK_COMPLETE_KEY"


def result_directories(incomplete: str) -> list[str]:
    """Return result directories and their parents."""
    return _paths(incomplete, lambda path: (path / "study.json").is_file())


def studies(incomplete: str) -> list[str]:
    """Return study files, their parents, and names of shipped studies."""
    from isoblk import paths  # noqa: PLC0415

    found = _paths(incomplete, lambda path: path.suffix == ".toml" and path.is_file())
    ours = sorted(path.stem for path in paths.studies_dir().glob("*.toml"))
    return found + [name for name in ours if name.startswith(incomplete)]


def points_from(environment: MutableMapping[str, str]) -> Callable[[str], list[str]]:
    """Return a completer of KEY=VALUE.

    Args:
        environment: of the process. It holds the command line; the parsed part is not enough,
            since parsing ends at an option whose value is being typed.
    """

    def points(incomplete: str) -> list[str]:
        """Return the points of result directories on the line; without one, all schedulers."""
        line = environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS", "")
        known = dict.fromkeys(point for word in line.split() for point in _points(Path(word)))
        if not known:
            from isoblk.schedulers.registry import SCHEDULERS  # noqa: PLC0415

            known = dict.fromkeys(f"scheduler={name}" for name in SCHEDULERS)
        key = environment.get(_KEY)
        if key is None:
            return [one for one in known if one.startswith(incomplete)]
        values = [one.removeprefix(f"{key}=") for one in known if one.startswith(f"{key}=")]
        return [one for one in values if one.startswith(incomplete)]

    return points


def _points(directory: Path) -> list[str]:
    try:
        record: Any = json.loads((directory / "study.json").read_bytes())
        specs = [run["planned"]["spec"] for run in record["runs"]]
        return [
            f"{key}={value}"
            for spec in specs
            if spec["kind"] == "share"
            for key, value in spec["point"].items()
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Not a result directory: the command reports the error.
        return []


def join_assignments(environment: MutableMapping[str, str]) -> None:
    """Rejoin each KEY=VALUE, which bash has split into three words.

    Of the word that is being typed keep only the value, since bash replaces only the value.
    """
    if not environment.get("_ISOBLK_COMPLETE", "").endswith("_bash"):
        return
    words = environment.get("COMP_WORDS", "").split("\n")
    try:
        at = min(int(environment.get("COMP_CWORD", "")), len(words))
    except ValueError:
        return
    if at < 0:
        return
    words.append("")
    before, here = words[:at], words[at]
    if here == "=" and before:
        environment[_KEY], here = before.pop(), ""
    elif len(before) > 1 and before[-1] == "=":
        environment[_KEY] = before[-2]
        del before[-2:]
    while "=" in before[1:-1]:
        place = before.index("=", 1)
        before[place - 1 : place + 2] = ["".join(before[place - 1 : place + 2])]
    environment["COMP_WORDS"] = "\n".join([*before, here])
    environment["COMP_CWORD"] = str(len(before))


def mend_zsh(home: Path) -> None:
    """Let zsh complete at the first Tab.

    zsh loads the file that Typer installs at the first Tab, and the file only defines the function
    that completes at the next. A file that cannot be written is left unchanged.
    """
    installed = home / ".zfunc/_isoblk"
    with suppress(OSError):
        text = installed.read_text() if installed.is_file() else ""
        if text and AT_ONCE not in text:
            installed.write_text(f"{text.rstrip()}\n{AT_ONCE}\n")


def _paths(incomplete: str, wanted: Callable[[Path], bool]) -> list[str]:
    """Return wanted paths with this prefix, and directories.

    If the only answer is a directory, return its contents: a shell ends the word at a single
    answer.
    """
    found = _below(incomplete, wanted)
    while len(found) == 1 and found[0].endswith("/"):
        within = _below(found[0], wanted)
        if not within:
            break
        found = within
    return found


def _below(incomplete: str, wanted: Callable[[Path], bool]) -> list[str]:
    directory, slash, name = incomplete.rpartition("/")
    parent = Path(directory + slash) if slash else Path()
    try:
        entries = sorted(
            path
            for path in parent.iterdir()
            if path.name.startswith(name) and path.name.startswith(".") == name.startswith(".")
        )
    except OSError:
        return []
    typed = directory + slash
    return [
        f"{typed}{path.name}" if wanted(path) else f"{typed}{path.name}/"
        for path in entries[:_MOST]
        if wanted(path) or (path.is_dir() and path.name not in _OF_RESULTS)
    ]
