# SPDX-License-Identifier: GPL-2.0-only
"""The packages as they are built: lintian has no word to say, equal inputs give equal bytes."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isoblk import __version__
from tests.unit.scripts import ROOT

pytestmark = pytest.mark.long

SERIES = "6.12 7.2"


def build(kind: str, output: Path) -> list[Path]:
    done = subprocess.run(
        [sys.executable, "packaging/build.py", kind, "--series", SERIES, "-o", output],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'packaging'}"},
        text=True,
        capture_output=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    # It says which kernels the package is for.
    for series in SERIES.split():
        assert re.search(rf"^kernels {series}\.\d+ on: headers of linux-source-", done.stdout, re.M)
    return sorted(output.iterdir())


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build("deb", tmp_path_factory.mktemp("debs"))


def contents(deb: Path) -> dict[str, str]:
    """Mode of each file of a package."""
    lines = subprocess.run(
        ["dpkg-deb", "-c", deb], text=True, capture_output=True, check=True
    ).stdout.splitlines()
    return {line.split(maxsplit=5)[5].removeprefix("."): line.split()[0] for line in lines}


def test_lintian_has_no_word_to_say(debs: list[Path]) -> None:
    done = subprocess.run(
        ["lintian", "--fail-on", "error,warning", *debs],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_packages_contain_all_files_that_users_need(debs: list[Path]) -> None:
    isoblk_dkms, isoblk = (contents(deb) for deb in debs)
    source = f"/usr/src/isoblk-{__version__}"
    for file in ("dkms.conf", "sched/isoblk/isoblk.c", "cache/Kbuild"):
        assert f"{source}/{file}" in isoblk_dkms
    for name in ("build", "headers-for"):
        assert isoblk_dkms[f"{source}/{name}"] == "-rwxr-xr-x"
    for header in ("elevator.h", "blk-mq.h", "blk-stat.h"):
        assert f"{source}/headers/7.2.6/block/{header}" in isoblk_dkms
    # The lab's modules and all that is made from sources stay away.
    assert not [
        name for name in isoblk_dkms if re.search(r"/(load|vdisk|tests|uml)/|\.(o|ko|mod)$", name)
    ]
    assert isoblk["/usr/bin/isoblk"] == "-rwxr-xr-x"
    for name in (
        "/usr/lib/systemd/system/isoblk-weights.service",
        "/usr/share/man/man1/isoblk-weights-follow.1.gz",
        "/usr/share/bash-completion/completions/isoblk",
        "/usr/share/zsh/vendor-completions/_isoblk",
        "/usr/share/fish/vendor_completions.d/isoblk.fish",
    ):
        assert name in isoblk
    compiled = {name.split("/")[-1] for name in isoblk if name.endswith(".so")}
    assert compiled == {
        f"{name}.cpython-3{n}-x86_64-linux-gnu.so"
        for name in ("_core", "_pydantic_core")
        for n in (11, 12, 13, 14)
    }
    assert not [name for name in isoblk if name.endswith(".pyc") or "polars" in name]


def test_the_service_is_enabled_started_and_stopped(debs: list[Path], tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-e", debs[1], tmp_path], check=True)
    postinst = (tmp_path / "postinst").read_text()
    assert re.search(r"deb-systemd-helper enable '?isoblk-weights\.service", postinst)
    assert re.search(r"deb-systemd-invoke \S+ '?isoblk-weights\.service", postinst)
    prerm = (tmp_path / "prerm").read_text()
    # Weights are removed once no process follows them.
    stopped = re.search(r"deb-systemd-invoke stop '?isoblk-weights\.service", prerm)
    assert stopped and stopped.start() < prerm.index("follow --undo")


def test_the_commands_run_with_the_files_of_the_package_alone(
    debs: list[Path], tmp_path: Path
) -> None:
    subprocess.run(["dpkg-deb", "-x", debs[1], tmp_path], check=True)
    program = (tmp_path / "usr/bin/isoblk").read_text()
    moved = tmp_path / "isoblk"
    moved.write_text(program.replace('"/usr/lib', f'"{tmp_path}/usr/lib'))
    python = shutil.which("python3", path="/usr/bin") or sys.executable

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-I", moved, *words],
            text=True,
            capture_output=True,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
            timeout=120,
        )

    assert run("--version").stdout == f"isoblk {__version__}\n"
    for words in (["weights"], ["weights", "follow"], ["disk", "use"], ["kernel", "modules"]):
        done = run(*words, "--help")
        assert (done.returncode, done.stderr) == (0, "")
    assert run("disk", "show").returncode == 0
    done = run("kernel", "modules", "--for", "9.9.9")
    assert done.returncode == 2
    assert done.stderr.startswith("isoblk: ") and done.stderr.count("\n") == 1


def test_equal_inputs_give_equal_packages(debs: list[Path], tmp_path: Path) -> None:
    again = build("deb", tmp_path)
    assert [path.name for path in again] == [path.name for path in debs]
    for one, other in zip(debs, again, strict=True):
        assert hashlib.sha256(one.read_bytes()).digest() == (
            hashlib.sha256(other.read_bytes()).digest()
        )


def test_rpm_holds_the_same_tree(debs: list[Path], tmp_path: Path) -> None:
    rpms = build("rpm", tmp_path)
    listed = subprocess.run(
        ["rpm", "-qpl", *rpms], text=True, capture_output=True, check=True
    ).stdout.splitlines()
    source = f"/usr/src/isoblk-{__version__}"
    from_deb = {
        name
        for name, mode in contents(debs[0]).items()
        if name.startswith(source) and mode[0] != "d"
    }
    assert from_deb <= set(listed)
    assert "/usr/bin/isoblk" in listed
