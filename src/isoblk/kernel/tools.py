# SPDX-License-Identifier: GPL-2.0-only
"""The programs that a build needs, and the Debian packages that contain them."""

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

# Prefix of install_command().
INSTALL = "run: apt install "

# Host programs that a guest runs, which an ordinary user's PATH may lack.
GUEST_TOOLS = {"insmod": "kmod"}
SBIN = "/usr/sbin:/sbin"


def missing(tools: Mapping[str, str], path: str | None = None) -> dict[str, str]:
    """Return the programs that are not found, with their packages. path: search path, else PATH."""
    return {tool: package for tool, package in tools.items() if not shutil.which(tool, path=path)}


def install_command(packages: list[str]) -> str:
    """Return the command that installs packages."""
    return INSTALL + " ".join(dict.fromkeys(packages))


def lacking_guest_tools() -> dict[str, str]:
    """Return those of GUEST_TOOLS that are not installed, with their packages."""
    return missing(GUEST_TOOLS, f"{os.environ.get('PATH', '')}:{SBIN}")


def require_build_tools(arch: str = "um", besides: Sequence[str] = ()) -> None:
    """Check that a kernel, and modules for it, can be compiled on this machine.

    Args:
        arch: target of the kernel.
        besides: other missing packages, to be named in the same error.

    Raises:
        UserError: names all that is missing, and one command that installs it.
    """
    absent = lacking(arch) | {package: package for package in besides}
    if absent:
        raise UserError(
            f"needed to build kernels and not found: {', '.join(absent)}",
            next=install_command(list(absent.values())),
        )


def lacking(arch: str = "um") -> dict[str, str]:
    """Return what a build needs and is not installed, with the packages."""
    absent = missing(BUILD_TOOLS)
    # Without a compiler the headers cannot be checked; installing a present package does no harm.
    compiler_is_here = "gcc" not in absent
    if not (compiler_is_here and has_libc_headers()):
        absent["the C library's headers"] = "libc6-dev"
    if arch == "x86_64" and not (compiler_is_here and has_libelf()):
        absent["libelf's headers"] = "libelf-dev"
    return absent


def has_libc_headers() -> bool:
    """Return whether the compiler finds the headers of the C library, which UML needs."""
    return _has_header("sys/random.h")


def has_libelf() -> bool:
    """Return whether the compiler finds libelf's headers, which objtool of every x86-64 build
    needs."""
    return _has_header("gelf.h")


def _has_header(name: str) -> bool:
    command = ["gcc", "-E", "-include", name, "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def compiler() -> str:
    """Return the first line of --version of the compiler and of the linker."""
    lines = [
        subprocess.run([tool, "--version"], text=True, capture_output=True, check=True)
        .stdout.partition("\n")[0]
        .strip()
        for tool in ("gcc", "ld")
    ]
    return "; ".join(lines)


def compiler_is_older(told: str) -> bool:
    """Return whether the installed gcc is of an older series than a kernel's compiler, whose
    options it may not know.

    Args:
        told: the kernel's compiler in its configuration, as "... 14.2.0" of series 14.

    Returns:
        False if either is unknown: a build will show it.
    """
    theirs = re.search(r"\bgcc\b.* (\d+)\.\d+\.\d+$", told)
    if theirs is None or missing({"gcc": "gcc"}):
        return False
    done = subprocess.run(["gcc", "-dumpversion"], text=True, capture_output=True, check=False)
    own = re.match(r"\d+", done.stdout)
    return own is not None and int(own[0]) < int(theirs[1])
