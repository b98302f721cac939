# SPDX-License-Identifier: GPL-2.0-only
"""What the packages hold, laid out in directories: the same for Debian, RPM and Arch.

isoblk-dkms is sources for DKMS. isoblk is the commands for a machine that has the schedulers, with
the Python packages they need, and without the lab's.
"""

import ast
import hashlib
import importlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from typer._completion_shared import get_completion_script

from headers import Headers
from isoblk.cli.completing import AT_ONCE
from isoblk.cli.main import WITHOUT_LAB
from isoblk.errors import RunError, UserError
from isoblk.kernel import store
from isoblk.kernel.modules import sources_of
from isoblk.paths import cache_dir

ROOT: Final = Path(__file__).resolve().parents[1]
HERE: Final = ROOT / "packaging"

DKMS_TOOLS: Final = "usr/lib/isoblk-dkms"
# Laid out as the repository is, whose paths isoblk.paths knows.
PRIVATE: Final = "usr/lib/isoblk"

# Of kernel/: what is installed.
_DELIVERED: Final = ("sched", "cache", "include")

# The commands of a machine, and what the command line itself needs.
ENTRIES: Final = (
    "isoblk.__main__",
    "isoblk.cli.main",
    *(f"isoblk.cli.{name}" for name in WITHOUT_LAB),
)

# What they read besides.
_DATA: Final = ("src/isoblk/weights/drives.csv",)

# The Python packages that these need; what rich would need for Markdown and code is never used.
_WHEELS: Final = (
    *("annotated-doc", "annotated-types", "msgspec", "pydantic", "pydantic-core", "rich"),
    *("shellingham", "typer", "typing-extensions", "typing-inspection"),
)
# Compiled for each: Debian 12, Ubuntu 24.04, Debian 13 and testing. Their names differ, so that
# they lie side by side.
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
_PLATFORM: Final = "manylinux2014_x86_64"
_PLATFORMS: Final = (_PLATFORM, "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")


def dkms(target: Path, headers: Sequence[Headers], version: str) -> None:
    """Lay out isoblk-dkms below a directory."""
    tree = target / f"usr/src/isoblk-{version}"
    _kernel_sources(tree)
    for name in ("build", "headers-for", "Kbuild"):
        _copy(HERE / "dkms" / name, tree / name)
    for one in headers:
        place = tree / "headers" / one.variant.since
        shutil.copytree(one.directory, place)
        if one.variant.until is not None:
            (place / "UNTIL").write_text(f"{one.variant.until}\n")
    tools = target / DKMS_TOOLS
    series = "|".join(dict.fromkeys(re.escape(one.series) for one in headers))
    for name, path in (("dkms.conf", tree / "dkms.conf"), ("tell", tools / "tell")):
        _fill(HERE / "dkms" / name, path, MODULE_VERSION=version, SERIES=rf"^({series})[.-]")


def _fill(template: Path, path: Path, **values: str) -> None:
    text = template.read_text()
    for name, value in values.items():
        text = text.replace(f"#{name}#", value)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(template.stat().st_mode & 0o755)


def _kernel_sources(tree: Path) -> None:
    kernel = ROOT / "kernel"
    for path in sources_of(kernel):
        if path.relative_to(kernel).parts[0] in _DELIVERED:
            _copy(path, tree / path.relative_to(kernel))


def commands(target: Path) -> None:
    """Lay out isoblk below a directory."""
    lay_out_python(target)
    _unpack_wheels(target / PRIVATE / "python")
    program = target / "usr/bin/isoblk"
    _copy(HERE / "isoblk", program)
    _copy(HERE / "isoblk-weights.service", target / "usr/lib/systemd/system/isoblk-weights.service")
    _manual(target / "usr/share/man/man1")
    _completion(target / "usr/share")


def lay_out_python(target: Path) -> None:
    """isoblk's own part of it."""
    private = target / PRIVATE
    for path in (*python_files(ENTRIES), *(ROOT / name for name in _DATA)):
        _copy(path, private / path.relative_to(ROOT))
    _kernel_sources(private / "kernel")
    _copy(HERE / "dkms/Kbuild", private / "kernel/Kbuild")


def python_files(entries: Iterable[str], source: Path = ROOT / "src") -> list[Path]:
    """The files of isoblk that these modules lead to, by whatever import, also a late one."""
    found: dict[str, Path] = {}
    waiting = [*entries]
    while waiting:
        name = waiting.pop()
        path = _file_of(name, source)
        if path is None or name in found:
            continue
        found[name] = path
        waiting += _imports(name, path)
        # A package is executed before what is in it.
        waiting += [name.rpartition(".")[0]]
    return sorted(found.values())


def _file_of(name: str, source: Path) -> Path | None:
    base = source.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if name and path.is_file():
            return path
    return None


def _imports(name: str, path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("isoblk"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isoblk"):
            assert node.module and not node.level, name
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def _unpack_wheels(target: Path) -> None:
    """Unpack the Python packages into one directory, with the licences that came with them."""
    for wheel in _wheels():
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                name = info.filename
                if info.is_dir() or not _kept(name):
                    continue
                path = target / name
                content = archive.read(info)
                if path.exists() and path.read_bytes() != content and "dist-info" not in name:
                    raise RunError("wheels of one version differ", where=name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod(0o644)


def _kept(name: str) -> bool:
    """Whether a wheel's file is of use here: no type stubs, no lists of files."""
    if ".dist-info/" in name:
        return "licen" in name.lower() or name.endswith("/METADATA")
    return not name.endswith((".pyi", ".h", ".c", "py.typed")) and "/tests/" not in name


def _wheels() -> list[Path]:
    """The wheels of requirements.lock, by its hashes; fetched if they are not here."""
    lock = _locked((ROOT / "requirements.lock").read_text())
    key = hashlib.sha256("\n".join((lock, *PYTHONS)).encode()).hexdigest()[:12]
    home = cache_dir() / "wheels" / key
    with store.lock("wheels", wait=lambda: print("waiting for the wheels", file=sys.stderr)):
        if not home.is_dir():
            part = home.with_name(f".{key}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            (part / "lock").write_text(lock)
            for python in PYTHONS:
                _download(part, python)
            part.rename(home)
    return sorted(home.glob("*.whl"))


def _locked(lock: str) -> str:
    """What a lock file says of the packages that are wanted."""
    entries = re.findall(r"^\S.*?(?=^\S|\Z)", lock, re.MULTILINE | re.DOTALL)
    named = {entry.partition("==")[0]: entry for entry in entries}
    if absent := [name for name in _WHEELS if name not in named]:
        raise RunError(f"not in requirements.lock: {', '.join(absent)}")
    return "".join(named[name] for name in _WHEELS)


def _download(directory: Path, python: str) -> None:
    print(f"fetching the Python packages for Python {python}", file=sys.stderr)
    platforms = [word for one in _PLATFORMS for word in ("--platform", one)]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--require-hashes", "--only-binary=:all:", *platforms),
            *("--implementation=cp", f"--python-version={python}", "-d", str(directory)),
            *("-r", str(directory / "lock")),
        ],
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip failed"]
        raise RunError(f"the Python packages cannot be fetched: {lines[-1]}")


def _manual(directory: Path) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    pages: dict[str, str] = importlib.import_module("manpages").pages(lab=False)
    directory.mkdir(parents=True)
    for file, text in pages.items():
        command = file.removesuffix(".1").split("-")[1:2]
        if not command or command[0] in WITHOUT_LAB:
            (directory / file).write_text(text)


def _completion(share: Path) -> None:
    for shell, path in (
        ("bash", "bash-completion/completions/isoblk"),
        ("zsh", "zsh/vendor-completions/_isoblk"),
        ("fish", "fish/vendor_completions.d/isoblk.fish"),
    ):
        script = _completion_of(shell) + f"\n{AT_ONCE}" * (shell == "zsh")
        target = share / path
        target.parent.mkdir(parents=True)
        target.write_text(f"{script}\n")


def _completion_of(shell: str) -> str:
    return get_completion_script(prog_name="isoblk", complete_var="_ISOBLK_COMPLETE", shell=shell)


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise UserError("missing", where=str(source))
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)
