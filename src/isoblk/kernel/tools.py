# SPDX-License-Identifier: GPL-2.0-only
"""The programs that a build needs, and the Debian packages that hold them."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

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

# How install_command() begins.
INSTALL = "run: apt install "

# What a guest runs of its host, which an ordinary user's PATH may lack.
GUEST_TOOLS = {"insmod": "kmod"}
SBIN = "/usr/sbin:/sbin"


def missing(tools: Mapping[str, str], path: str | None = None) -> dict[str, str]:
    """Those programs that are not on a path, with their packages. path: if not PATH."""
    return {tool: package for tool, package in tools.items() if not shutil.which(tool, path=path)}


def install_command(packages: list[str]) -> str:
    """The command that installs packages."""
    return INSTALL + " ".join(dict.fromkeys(packages))


def lacking_guest_tools() -> dict[str, str]:
    """Those of GUEST_TOOLS that are not here, with their packages."""
    return missing(GUEST_TOOLS, f"{os.environ.get('PATH', '')}:{SBIN}")


def require_build_tools(arch: str = "um", besides: Sequence[str] = ()) -> None:
    """Check that a kernel, and modules for it, can be compiled here.

    Args:
        arch: that it is for.
        besides: packages that are missing for another reason, to be named with those of the build.

    Raises:
        UserError: naming all that is missing and one command that installs it.
    """
    absent = lacking(arch) | {package: package for package in besides}
    if absent:
        raise UserError(
            f"needed to build kernels and not found: {', '.join(absent)}",
            next=install_command(list(absent.values())),
        )


def lacking(arch: str = "um") -> dict[str, str]:
    """What a build needs and is not here, with the packages that hold it."""
    absent = missing(BUILD_TOOLS)
    # Without a compiler nobody can tell; to install what is there is no harm.
    compiler_is_here = "gcc" not in absent
    if not (compiler_is_here and has_libc_headers()):
        absent["the C library's headers"] = "libc6-dev"
    if arch == "x86_64" and not (compiler_is_here and has_libelf()):
        absent["libelf's headers"] = "libelf-dev"
    return absent


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


def compiler_is_older(told: str) -> bool:
    """Whether gcc here is of an older series than the one that compiled a kernel, whose options for
    modules it may not know.

    Args:
        told: the kernel's compiler, as its configuration has it. "... 14.2.0": of series 14.

    Returns:
        False where either is unknown: a build tells more.
    """
    theirs = re.search(r"\bgcc\b.* (\d+)\.\d+\.\d+$", told)
    if theirs is None or missing({"gcc": "gcc"}):
        return False
    done = subprocess.run(["gcc", "-dumpversion"], text=True, capture_output=True, check=False)
    own = re.match(r"\d+", done.stdout)
    return own is not None and int(own[0]) < int(theirs[1])
