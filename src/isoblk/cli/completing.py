# SPDX-License-Identifier: GPL-2.0-only
"""What the shell completes arguments to. It is called at each Tab, so it loads little."""

import json
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_MOST = 200  # entries of a directory that are looked at
_OF_RESULTS = ("runs", "figures", "earlier")  # directories in a result directory
# The end of a zsh file that completes at the first Tab.
AT_ONCE = '[[ $funcstack[1] = _isoblk ]] && _isoblk_completion "$@"'
# Where join_assignments() leaves the key that bash has split off.
_KEY = "_ISOBLK_COMPLETE_KEY"


def result_directories(incomplete: str) -> list[str]:
    """Directories that hold results, and those on the way to one."""
    return _paths(incomplete, lambda path: (path / "study.json").is_file())


def studies(incomplete: str) -> list[str]:
    """Study files, directories on the way to one, and names of those that come with isoblk."""
    from isoblk import paths  # noqa: PLC0415

    found = _paths(incomplete, lambda path: path.suffix == ".toml" and path.is_file())
    ours = sorted(path.stem for path in paths.studies_dir().glob("*.toml"))
    return found + [name for name in ours if name.startswith(incomplete)]


def points_from(environment: MutableMapping[str, str]) -> Callable[[str], list[str]]:
    """What completes KEY=VALUE.

    Args:
        environment: of the process, in which the shell says what is on the line. What has been
            parsed of it does not help: an option whose value is being typed ends the parsing.
    """

    def points(incomplete: str) -> list[str]:
        """Those of the result directories on the line; without one, all schedulers."""
        line = environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS", "")
        known = dict.fromkeys(one for word in line.split() for one in _points(Path(word)))
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
        # It is no result directory, which the command itself says better.
        return []


def join_assignments(environment: MutableMapping[str, str]) -> None:
    """Make one word of each KEY=VALUE again, which bash has split in three for its completion; of
    the one that is being typed the value alone, for that is what bash puts the answer in place of.
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
    """Have zsh complete at the first Tab. It loads the file that Typer installs at that Tab, and
    the file then only defines what would complete at the next. Where it cannot be written, it
    stays as Typer wrote it."""
    installed = home / ".zfunc/_isoblk"
    with suppress(OSError):
        text = installed.read_text() if installed.is_file() else ""
        if text and AT_ONCE not in text:
            installed.write_text(f"{text.rstrip()}\n{AT_ONCE}\n")


def _paths(incomplete: str, wanted: Callable[[Path], bool]) -> list[str]:
    """Paths that begin so and are wanted, and directories. Of one directory alone what is in it:
    a shell takes a single answer for the end of the word."""
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
