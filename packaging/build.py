# SPDX-License-Identifier: GPL-2.0-only
"""Build the packages isoblk-dkms and isoblk: `make deb` and `make rpm`.

    build.py deb|rpm|stage [--series "6.12 7.2"] [-o DIR]

stage: only lay out what they hold, for makepkg.

Equal sources, headers and wheels give equal packages: each file has the time of the last commit.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from pathlib import Path
from tempfile import TemporaryDirectory

import headers
import stage
from headers import SERIES, Headers
from isoblk import __version__
from isoblk.errors import IsoblkError, RunError, UserError

_PROGRAMS = {
    "deb": {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "dh_dkms": "dh-dkms"},
    "rpm": {"rpmbuild": "rpm"},
    "stage": {},
}


def main() -> int:
    """Parse, build, say what was built."""
    parser = argparse.ArgumentParser(description="Build packages.")
    parser.add_argument("kind", choices=tuple(_PROGRAMS))
    parser.add_argument("--series", default="", help="kernels; default: all that can be had")
    parser.add_argument("--refresh", action="store_true", help="fetch the headers again")
    parser.add_argument("--version", default=__version__, help="version of the packages")
    parser.add_argument("-o", "--output", type=Path, default=stage.ROOT / "dist")
    options = parser.parse_args()
    try:
        build(options)
    except IsoblkError as error:
        print(f"{options.kind}: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def build(options: argparse.Namespace) -> None:
    """Build one kind of packages."""
    _require(_PROGRAMS[options.kind])
    began = time.monotonic()
    wanted = options.series.split() or list(SERIES)
    found = headers.gather(wanted, insist=bool(options.series), refresh=options.refresh)
    if not found:
        raise RunError("the private headers of no kernel can be had")
    # Whoever unpacks a package reads what is in it.
    os.umask(0o022)
    if options.kind == "stage":
        _lay_out(options.output, found, options.version)
        return
    with TemporaryDirectory(prefix="isoblk-package-") as name:
        work = Path(name)
        make = {"deb": _deb, "rpm": _rpm}[options.kind]
        made = make(work, found, options.version, _epoch())
        options.output.mkdir(parents=True, exist_ok=True)
        for path in made:
            shutil.copyfile(path, options.output / path.name)
            size = path.stat().st_size / 1e3
            print(f"{_short(options.output)}/{path.name}: {size:,.0f} kB")
    for one in found:
        print(f"kernels {one.variant.name}: headers of {one.origin}")
    print(f"built in {time.monotonic() - began:.0f} s")


def _short(directory: Path) -> str:
    return os.path.relpath(directory) if directory.is_relative_to(Path.cwd()) else str(directory)


def _require(programs: Mapping[str, str]) -> None:
    absent = [package for program, package in programs.items() if not shutil.which(program)]
    if absent:
        raise UserError(
            f"needed and not found: {', '.join(absent)}",
            next=f"run: apt install {' '.join(absent)}",
        )


def _epoch() -> int:
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    command = ["git", "-C", str(stage.ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        raise UserError("this is no git checkout", next="set SOURCE_DATE_EPOCH")
    return int(done.stdout)


def _lay_out(target: Path, found: Sequence[Headers], version: str) -> None:
    stage.dkms(target / "isoblk-dkms", found, version)
    stage.commands(target / "isoblk")


def _deb(work: Path, found: Sequence[Headers], version: str, epoch: int) -> list[Path]:
    tree = work / f"isoblk-{version}"
    _lay_out(tree / "stage", found, version)
    shutil.copytree(stage.HERE / "debian", tree / "debian")
    (tree / "debian/changelog").write_text(_changelog(version, epoch))
    for name in ("postinst.d", "header_postinst.d"):
        hook = tree / "stage/isoblk-dkms/etc/kernel" / name / "isoblk-dkms"
        hook.parent.mkdir(parents=True)
        shutil.copy(stage.HERE / "dkms/kernel-hook", hook)
    _run(["dpkg-buildpackage", "-b", "-us", "-uc", "-d"], tree, epoch)
    return sorted(work.glob("*.deb"))


def _changelog(version: str, epoch: int) -> str:
    """Debian's form of it; docs/ and CHANGELOG.md have what changed."""
    return (
        f"isoblk ({version}) unstable; urgency=medium\n\n"
        f"  * Version {version}; CHANGELOG.md has what is new.\n\n"
        f" -- {_maintainer()}  {formatdate(epoch)}\n"
    )


def _maintainer() -> str:
    lines = (stage.HERE / "debian/control").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("Maintainer: "))


def _rpm(work: Path, found: Sequence[Headers], version: str, epoch: int) -> list[Path]:
    _lay_out(work / "stage", found, version)
    _run(
        [
            *("rpmbuild", "-bb", str(stage.HERE / "rpm/isoblk.spec"), "--nodeps"),
            *("--define", f"_topdir {work / 'rpm'}", "--define", f"isoblk_version {version}"),
            *("--define", f"isoblk_stage {work / 'stage'}", "--define", "_buildhost localhost"),
            *("--define", "use_source_date_epoch_as_buildtime 1"),
            *("--define", "clamp_mtime_to_source_date_epoch 1"),
        ],
        work,
        epoch,
    )
    return sorted((work / "rpm/RPMS").glob("*/*.rpm"))


def _run(command: Sequence[str], directory: Path, epoch: int) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": str(epoch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise RunError(f"{command[0]} failed")


if __name__ == "__main__":
    sys.exit(main())
