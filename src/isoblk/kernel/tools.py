# SPDX-License-Identifier: GPL-2.0-only
"""The programs that a build needs, and the Debian packages that hold them."""

import shutil
import subprocess
from collections.abc import Mapping

from isoblk.errors import UserError

# Program: package.
BUILD_TOOLS = {
    "gcc": "gcc",
    "ld": "binutils",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl-base",
    "tar": "tar",
    "xz": "xz-utils",
}


def missing(tools: Mapping[str, str], path: str | None = None) -> dict[str, str]:
    """Those programs that are not on a path, with their packages. path: if not PATH."""
    return {tool: package for tool, package in tools.items() if not shutil.which(tool, path=path)}


def install_command(packages: list[str]) -> str:
    """The command that installs packages."""
    return "run: apt install " + " ".join(dict.fromkeys(packages))


def require_build_tools(arch: str = "um") -> None:
    """Check that a kernel, and modules for it, can be compiled here.

    Raises:
        UserError: naming what is missing and the command that installs it.
    """
    if absent := missing(BUILD_TOOLS):
        names = ", ".join(absent)
        raise UserError(
            f"needed to build kernels and not found: {names}",
            next=install_command(list(absent.values())),
        )
    if not has_libc_headers():
        raise UserError("the C library's headers are missing", next=install_command(["libc6-dev"]))
    if arch == "x86_64" and not has_libelf():
        raise UserError("the headers of libelf are missing", next=install_command(["libelf-dev"]))


def has_libc_headers() -> bool:
    """Whether the compiler finds the headers of the C library, with which UML is built."""
    return _has_header("sys/random.h")


def has_libelf() -> bool:
    """Whether the compiler finds libelf's headers: objtool, of every x86-64 build, needs them."""
    return _has_header("gelf.h")


def _has_header(name: str) -> bool:
    command = ["gcc", "-E", "-include", name, "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def compiler() -> str:
    """The compiler and the linker with their versions: first line of each one's --version."""
    lines = [
        subprocess.run([tool, "--version"], text=True, capture_output=True, check=True)
        .stdout.partition("\n")[0]
        .strip()
        for tool in ("gcc", "ld")
    ]
    return "; ".join(lines)
