# SPDX-License-Identifier: GPL-2.0-only
"""The wheel holds the files the code reads, and nothing else; a checkout reads its own files."""

import os
import re
import shutil
import subprocess
import sys
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import pytest

from isoblk import paths
from isoblk.errors import UserError
from isoblk.kernel import tools
from isoblk.kernel.builder import recipe
from isoblk.kernel.modules import hash_of, library_sources, module_sources

ROOT = Path(__file__).parents[2]
DATA = ("kernel", "studies", "java")
# The names in a Kbuild: objects, some in $(addprefix FOLDER/, ...).
OBJECT = re.compile(r"(?<![\w-])(?!CFLAGS)([\w-]+)\.o\b")
# Linked by kbuild of the others in the same Kbuild.
COMPOSITE = re.compile(r"^([\w-]+)-(?:y|objs)\b", re.MULTILINE)


def _tracked(*directories: str) -> set[str]:
    """The files of the repository there: those git tracks, or would."""
    try:
        done = subprocess.run(
            ["git", "-C", ROOT, "ls-files", "-zco", "--exclude-standard", *directories],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git repository")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of a copy of the repository, in which builds and tests have left what they leave."""
    base = tmp_path_factory.mktemp("wheel")
    copy = base / "repository"
    for name in (*_tracked(*DATA, "src"), "pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    for left in (
        "kernel/sched/isoblk.o",
        "kernel/sched/isoblk-iosched.mod.c",
        "kernel/sched/.isoblk.o.cmd",
        "kernel/Module.symvers",
        "src/isoblk/__pycache__/paths.cpython-311.pyc",
        "src/.mypy_cache/x.json",
        "tests/unit/test_x.py",
        "results/quick/study.json",
    ):
        (copy / left).parent.mkdir(parents=True, exist_ok=True)
        (copy / left).write_text("left")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", base / "dist"],
        cwd=copy,
        check=True,
        capture_output=True,
    )
    (made,) = (base / "dist").iterdir()
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as pip installs it in site-packages, which no user may write to."""
    place = tmp_path_factory.mktemp("site-packages")
    with ZipFile(wheel) as archive:
        archive.extractall(place)
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return place


def test_it_is_of_python_alone(wheel: Path) -> None:
    assert re.fullmatch(r"isoblk-[\d.]+-py3-none-any\.whl", wheel.name)


def test_it_holds_the_repositorys_files_and_no_others(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {f"isoblk/data/{name}" for name in _tracked(*DATA)}
    expected |= {name.removeprefix("src/") for name in _tracked("src")}
    assert names == expected


def test_every_object_that_a_kbuild_names_has_its_source(installed: Path) -> None:
    tree = installed / "isoblk/data/kernel"
    count = 0
    for kbuild in tree.rglob("Kbuild"):
        text = kbuild.read_text()
        sources = {path.stem for path in kbuild.parent.rglob("*.c")}
        named = set(OBJECT.findall(text)) - set(COMPOSITE.findall(text))
        assert named - sources == set(), kbuild
        count += len(named)
    assert count > 100


def test_modules_and_kernels_have_the_keys_of_the_checkouts(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keys(tree: Path) -> list[str]:
        monkeypatch.setattr("isoblk.kernel.builder.kernel_tree", lambda: tree)
        hashes = [hash_of([*module_sources(tree), *library_sources("um", tree)], tree)]
        return hashes + [
            recipe(debug, arch) for debug in (False, True) for arch in ("um", "um-smp", "um-lean")
        ]

    assert keys(installed / "isoblk/data/kernel") == keys(ROOT / "kernel")


def test_an_installed_wheel_reads_its_own_data_and_the_same_studies(
    installed: Path, tmp_path: Path
) -> None:
    told = {}
    for name, place in (("wheel", installed), ("checkout", ROOT / "src")):
        env = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        for arguments in (["run", "quick", "--dry-run"], ["device", "list"]):
            done = subprocess.run(
                [sys.executable, "-m", "isoblk", *arguments],
                cwd=tmp_path,
                env=env,
                check=True,
                capture_output=True,
                text=True,
            )
            told[name, arguments[0]] = done.stdout
            if arguments[0] == "run":
                at = str(installed if name == "wheel" else ROOT / "studies")
                assert at in done.stderr
    # Each script begins with its run's id.
    assert told["wheel", "run"] == told["checkout", "run"]
    assert told["wheel", "device"] == told["checkout", "device"]


def test_the_metadata_of_the_wheel_name_its_requirements(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(name).decode())
    assert metadata["Requires-Python"] == ">=3.11"
    assert any(one.startswith("typer") for one in metadata.get_all("Requires-Dist", []))


def test_data_lies_beside_the_code_or_in_the_repository(tmp_path: Path) -> None:
    package = tmp_path / "src" / "isoblk"
    package.mkdir(parents=True)
    assert paths.data_dir(package) == tmp_path
    (package / "data").mkdir()
    assert paths.data_dir(package) == package / "data"
    assert paths.data_dir() == ROOT


def test_without_a_home_the_cache_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(path: object = None) -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("ISOBLK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(UserError, match="HOME is not set; set ISOBLK_CACHE"):
        paths.cache_dir()


@pytest.mark.parametrize("name", ["Containerfile", "docs/start/lab.md"])
def test_every_package_that_a_build_needs_is_installed_and_documented(name: str) -> None:
    words = set((ROOT / name).read_text().split())
    # Every Debian and Ubuntu has these.
    essential = {"perl-base", "tar"}
    needed = {*tools.BUILD_TOOLS.values(), *tools.GUEST_TOOLS.values(), "libc6-dev"}
    assert needed - essential <= words
