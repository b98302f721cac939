# SPDX-License-Identifier: GPL-2.0-only
"""Debian's own kernels: which packages belong together, and what becomes of them."""

import lzma
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isoblk import kernel
from isoblk.cli import kernel as cli_kernel
from isoblk.errors import UserError
from isoblk.kernel import Kernel, Silent, apt, stock, tools
from isoblk.lab import lab
from isoblk.lab.lab import kernel_for
from isoblk.run.tier import QEMU
from tests.unit.test_kernel_build import make_tree

VERSION = "6.12.117-1~deb12u1"
RELEASE = "6.12.117+deb12-amd64"
IMAGE = f"linux-image-{RELEASE}-unsigned"
HEADERS = f"linux-headers-{RELEASE}"
COMMON = "linux-headers-6.12.117+deb12-common"
KBUILD = "linux-kbuild-6.12.117+deb12"
SOURCE = "linux-source-6.12"


class FakeApt(apt.Apt):
    """An archive: package -> version."""

    def __init__(self, archive: dict[str, str]) -> None:
        super().__init__()
        self._archive = archive

    def candidate(self, package: str) -> str | None:
        return self._archive.get(package)

    def names(self, prefix: str) -> list[str]:
        return [name for name in self._archive if name.startswith(prefix)]


def archive(**changed: str) -> dict[str, str]:
    every = dict.fromkeys((IMAGE, HEADERS, COMMON, KBUILD, SOURCE), VERSION)
    others = ("6.12.117+deb12-cloud-amd64", "6.12.117+deb12-rt-amd64", "6.12.111+deb12-amd64")
    every |= {f"linux-image-{name}-unsigned": VERSION for name in others}
    return every | changed


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_packages_of_one_version_and_of_the_plain_flavour() -> None:
    wanted = stock.packages(FakeApt(archive()), "6.12")
    assert wanted == [(name, VERSION) for name in (IMAGE, HEADERS, COMMON, KBUILD, SOURCE)]


@pytest.mark.parametrize("name", [IMAGE, HEADERS, COMMON, KBUILD, SOURCE])
def test_a_package_of_another_version_makes_the_set_unusable(name: str) -> None:
    assert stock.packages(FakeApt(archive(**{name: "6.12.118-1"})), "6.12") == []


def test_newest_is_that_of_the_newest_source() -> None:
    newer = {name.replace("6.12.117", "7.2.12"): "7.2.12-1" for name in archive()}
    newer["linux-source-7.2"] = "7.2.12-1"
    del newer[SOURCE]
    wanted = stock.packages(FakeApt(archive() | newer), None)
    assert wanted[0] == ("linux-image-7.2.12+deb12-amd64-unsigned", "7.2.12-1")


def deb(root: Path, package: str, files: dict[str, bytes | None]) -> apt.Deb:
    """A package that holds files; None: the link that Debian has there."""
    top = root / package
    (top / "DEBIAN").mkdir(parents=True)
    control = f"Package: {package}\nVersion: {VERSION}\nArchitecture: amd64\n"
    control += "Maintainer: x <x@example.org>\nDescription: x\n"
    (top / "DEBIAN/control").write_text(control)
    for name, data in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            (top / name).symlink_to(f"../../lib/{KBUILD}/scripts")
        else:
            (top / name).write_bytes(data)
    path = root / f"{package}.deb"
    command = ["dpkg-deb", "--root-owner-group", "-b", str(top), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return apt.Deb(package, VERSION, path)


@pytest.fixture
def debs(tmp_path: Path) -> list[apt.Deb]:
    make_tree(tmp_path / "linux-source-6.12")
    tar = tmp_path / "source.tar.xz"
    subprocess.run(["tar", "-C", tmp_path, "-cJf", tar, "linux-source-6.12"], check=True)
    modules = f"lib/modules/{RELEASE}/kernel"
    return [
        deb(
            tmp_path,
            IMAGE,
            {
                f"boot/vmlinuz-{RELEASE}": b"image",
                f"{modules}/fs/9p/9p.ko.xz": lzma.compress(b"9p"),
                f"{modules}/net/9p/9pnet.ko": b"9pnet",
                f"{modules}/drivers/block/null_blk/null_blk.ko.xz": lzma.compress(b"null_blk"),
                f"{modules}/sound/sound.ko.xz": lzma.compress(b"noise"),
            },
        ),
        deb(
            tmp_path,
            HEADERS,
            {
                f"usr/src/{HEADERS}/Makefile": f"include /usr/src/{COMMON}/Makefile\n".encode(),
                f"usr/src/{HEADERS}/vmlinux": b"types",
                f"usr/src/{HEADERS}/.config": b'CONFIG_CC_VERSION_TEXT="gcc-12 (Debian) 12.2.0"\n',
                f"usr/src/{HEADERS}/scripts": None,
            },
        ),
        deb(
            tmp_path,
            COMMON,
            {
                f"usr/src/{COMMON}/Makefile": b"told:\n\t@cat scripts/word\n",
                f"usr/src/{COMMON}/arch/x86/Makefile": b"",
                f"usr/src/{COMMON}/arch/arm/Makefile": b"",
            },
        ),
        deb(tmp_path, KBUILD, {f"usr/lib/{KBUILD}/scripts/word": b"found"}),
        deb(tmp_path, SOURCE, {"usr/src/linux-source-6.12.tar.xz": tar.read_bytes()}),
    ]


@pytest.fixture
def fetched(debs: list[apt.Deb], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answers downloads; returns the list of requests."""
    asked: list[str] = []

    def fetch_all(
        find: Callable[[apt.Apt], Sequence[tuple[str, str]]], what: str, *_: object, **__: object
    ) -> list[apt.Deb]:
        asked.append(what)
        wanted = [name for name, _ in find(FakeApt(archive()))]
        return [one for one in debs if one.package in wanted]

    monkeypatch.setattr(apt, "fetch_all", fetch_all)
    return asked


def test_an_unpacked_kernel_can_be_booted_and_built_for(fetched: list[str], cache: Path) -> None:
    made = stock.build(None, None, Silent())
    assert (made.version, made.arch, made.stock, made.debug) == (RELEASE, "x86_64", True, False)
    assert made.linux.read_bytes() == b"image"
    assert made.compiler == "gcc-12 (Debian) 12.2.0"
    assert (made.tree / "block/blk-core.c").is_file()
    # In the order in which they load; modules that are not needed are not kept.
    base = [path.read_bytes() for path in sorted(made.base_modules.glob("*.ko"))]
    assert base == [b"9pnet", b"9p"]
    assert {name: path.read_bytes() for name, path in made.modules().items()} == {
        "null_blk": b"null_blk"
    }
    # The headers work where they are, and say nothing of types.
    told = subprocess.run(["make", "-s", "-C", made.build, "told"], capture_output=True, check=True)
    assert told.stdout == b"found"
    assert not (made.build / "vmlinux").exists()
    assert not list(cache.glob(f"kernels/{made.key}/usr/src/*/arch/arm"))
    assert [path.name for path in (cache / "kernels").iterdir()] == [made.key]
    assert not [path for path in (cache / "sources").iterdir() if path.name.startswith(".")]


def test_a_kernel_that_is_ready_is_not_fetched_again(fetched: list[str]) -> None:
    made = stock.build(None, None, Silent())
    assert stock.build("6.12", None, Silent()) == made == stock.find() == stock.find("6.12")
    assert len(fetched) == 1


def test_a_kernel_of_a_newer_compiler_is_passed_over(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where two releases of a distribution share a cache."""
    theirs = "x86_64-linux-gnu-gcc-99 (Debian 99.2.0-19) 99.2.0"
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(stock, "_compiler", lambda _: theirs)
        made = stock.build(None, None, Silent())
    assert made.compiler == theirs
    with pytest.raises(UserError, match="no stock kernel"):
        stock.find()
    stock.build("6.12", None, Silent())
    assert len(fetched) == 2


@pytest.mark.parametrize(
    ("told", "older"),
    [
        ("x86_64-linux-gnu-gcc-99 (Debian 99.2.0-19) 99.2.0", True),
        ("gcc (Debian 1.2.0) 1.2.0; GNU ld 2.40", False),
        ("gcc-1 (Debian 1.2.0) 1.2.0", False),
        ("clang version 99.0.0", False),
        ("unknown", False),
    ],
)
def test_compilers_are_compared_by_series(told: str, older: bool) -> None:
    assert tools.compiler_is_older(told) is older


def test_a_source_that_is_there_is_not_fetched_again(fetched: list[str]) -> None:
    made = stock.build(None, None, Silent())
    kernel.clean([made.key])
    assert stock.packages(FakeApt(archive()), "6.12")[-1] == (KBUILD, VERSION)
    assert stock.build(None, None, Silent()) == made


def test_it_is_no_kernel_of_the_uml_machine(fetched: list[str]) -> None:
    stock.build(None, None, Silent())
    with pytest.raises(UserError, match=r"no kernel has been built; run: isoblk kernel build$"):
        kernel.find()
    with pytest.raises(UserError, match=r"run: isoblk kernel build --arch x86_64 --debug$"):
        kernel.find(debug=True, arch="x86_64")
    with pytest.raises(UserError, match=r"run: isoblk kernel build --arch um-smp$"):
        kernel.find(arch="um-smp")


def test_no_stock_kernel_says_how_to_get_one() -> None:
    with pytest.raises(UserError, match=r"run: isoblk kernel build --stock --version 7\.2$"):
        stock.find("7.2.1")


@pytest.mark.parametrize("option", ["--debug", "--source=x", "--arch=x86_64"])
def test_a_stock_kernel_is_as_it_is(option: str) -> None:
    result = CliRunner().invoke(cli_kernel.app, ["build", "--stock", option])
    assert result.exit_code == 2
    assert "--stock excludes" in result.output


def test_the_qemu_machine_prefers_the_stock_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Kernel("own", "6.12.1", "", "", False, Path(), arch="x86_64")
    theirs = Kernel("theirs", "6.12.1", "", "", False, Path(), arch="x86_64", stock=True)
    ready = [own, theirs]

    def find(version: str, debug: bool = False, arch: str = "um") -> Kernel:
        if debug or own not in ready:
            raise UserError("no own kernel")
        return own

    def find_stock(version: str) -> Kernel:
        if theirs not in ready:
            raise UserError("no stock kernel")
        return theirs

    monkeypatch.setattr(lab, "find", find)
    monkeypatch.setattr(stock, "find", find_stock)
    assert kernel_for(QEMU, "6.12") == theirs
    ready.remove(theirs)
    assert kernel_for(QEMU, "6.12") == own
    ready.remove(own)
    with pytest.raises(UserError, match="no stock kernel"):
        kernel_for(QEMU, "6.12")
    with pytest.raises(UserError, match="no own kernel"):
        kernel_for(QEMU, "6.12", debug=True)
