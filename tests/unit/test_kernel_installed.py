# SPDX-License-Identifier: GPL-2.0-only
"""Building for an installed kernel: with a make that only pretends, headers and a source of the
right version or none, and a way on from every refusal."""

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isoblk.cli import kernel as cli_kernel
from isoblk.errors import RunError, UserError
from isoblk.kernel import Silent, apt, installed, source
from isoblk.kernel.installed import Built, Installed, build_installed, find_installed
from isoblk.paths import kernel_tree

RELEASE = "6.12.117+deb12-amd64"

MAKE = """\
#!/bin/sh
fake=$(dirname "$0")
echo "$*" >> "$fake/calls"
for word; do
    case $word in
    kernelversion) cat "$fake/version"; exit ;;
    M=*) out=${word#M=} ;;
    esac
done
[ -e "$fake/fail" ] && { echo "sched/x.c:3:1: error: expected ';'"; exit 2; }
for name in sched/isoblk_share sched/feedbac-iosched cache/dm-setcache load/blkload \\
        tests/blkload_test; do
    mkdir -p "$out/${name%/*}"
    echo "  LD [M]  $name.ko"
    echo new > "$out/$name.ko"
done
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with headers in modules/, a source in linux/, and a pretended make in bin/."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "make").write_text(MAKE)
    (programs / "make").chmod(0o755)
    (programs / "gcc").symlink_to("/bin/true")
    (programs / "version").write_text("6.12.117\n")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(installed, "MODULES_ROOT", tmp_path / "modules")
    build = tmp_path / "modules" / RELEASE / "build"
    build.mkdir(parents=True)
    (build / "Makefile").touch()
    make_source(tmp_path / "linux", "117")
    return tmp_path


def make_source(tree: Path, sublevel: str) -> Path:
    for name in ("Kconfig", "arch/um/Makefile", "block/blk-core.c", "scripts/Makefile.build"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    text = f"VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = {sublevel}\nEXTRAVERSION =\n"
    (tree / "Makefile").write_text(text)
    return tree


def find(machine: Path, release: str = RELEASE) -> Installed:
    return find_installed(release, machine / "modules")


def build(machine: Path, given: Path | None = None) -> Built:
    return build_installed(find(machine), machine / "out", given, Silent())


def test_schedulers_and_cache_alone_are_delivered(machine: Path) -> None:
    built = build(machine, machine / "linux")
    assert built == Built(
        machine / "out", ("dm-setcache.ko", "feedbac-iosched.ko", "isoblk_share.ko")
    )
    assert sorted(path.name for path in built.directory.iterdir()) == list(built.names)
    # Nothing else is left, and nothing was built in the repository.
    assert not list(machine.glob(".out*"))
    assert not list(machine.glob("*.log"))
    call = (machine / "bin" / "calls").read_text().splitlines()[-1]
    assert f"KSRC={machine / 'linux'} " in call
    assert f"M={kernel_tree()}" not in call


def test_modules_of_before_are_replaced_and_other_files_are_not(machine: Path) -> None:
    (machine / "out").mkdir()
    (machine / "out" / "cfq-iosched.ko").touch()
    build(machine, machine / "linux")
    assert not (machine / "out" / "cfq-iosched.ko").exists()
    # Such as /lib/modules/.../updates, where others have put theirs.
    for stranger in ("thesis.tex", "nvidia.ko"):
        (machine / "out" / stranger).touch()
        with pytest.raises(UserError, match=r"has other contents.*choose -o"):
            build(machine, machine / "linux")
        (machine / "out" / stranger).unlink()


def test_a_users_log_is_not_written_over(machine: Path) -> None:
    (machine / "out.log").write_text("mine")
    build(machine, machine / "linux")
    assert (machine / "out.log").read_text() == "mine"


def test_a_failed_build_leaves_earlier_modules_and_a_log(machine: Path) -> None:
    build(machine, machine / "linux")
    (machine / "bin" / "fail").touch()
    with pytest.raises(RunError, match=r"x.c:3:1: error: expected ';'.*out\..*\.log"):
        build(machine, machine / "linux")
    assert len(list(machine.glob("out.*.log"))) == 1
    assert (machine / "out" / "isoblk_share.ko").exists()
    assert not list(machine.glob(".out*"))


@pytest.mark.parametrize("where", ["build", "build/source"])
def test_a_kernel_that_was_built_here_leads_to_its_own_source(machine: Path, where: str) -> None:
    private = machine / "modules" / RELEASE / where / "block"
    private.mkdir(parents=True)
    (private / "elevator.h").touch()
    build(machine)
    call = (machine / "bin" / "calls").read_text().splitlines()[-1]
    assert f"KSRC={private.parent} " in call


def test_a_source_of_another_version_is_refused(machine: Path) -> None:
    other = make_source(machine / "other", "118")
    with pytest.raises(UserError, match=r"Linux 6\.12\.118, .* Linux 6\.12\.117; give the source"):
        build(machine, other)
    assert not (machine / "out").exists()


def test_debians_source_is_fetched_in_the_kernels_own_version(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache's, or the newest package's, is another."""
    asked: list[object] = []

    def resolve(version: str | None, given: Path | None, *_: object) -> source.Source:
        asked.append(version or given)
        sublevel = "119" if version else "117"
        tree = make_source(machine / f"source-{sublevel}", sublevel)
        return source.Source(f"id-{sublevel}", f"6.12.{sublevel}", tree, owned=True)

    def download(_: object, package: str, version: str, directory: Path) -> apt.Deb:
        asked.append((package, version))
        return apt.Deb(package, version, directory / "x.deb")

    versions = ["6.12.119-1", "6.12.117-1~deb12u1", "6.12.11-1"]
    monkeypatch.setattr(source, "resolve", resolve)
    monkeypatch.setattr(apt.Apt, "download", download)
    monkeypatch.setattr(installed, "_versions", lambda package: versions)
    (machine / "cache" / "sources").mkdir(parents=True)
    build(machine)
    assert asked[:2] == ["6.12", ("linux-source-6.12", "6.12.117-1~deb12u1")]
    call = (machine / "bin" / "calls").read_text().splitlines()[-1]
    assert f"KSRC={machine / 'source-117'} " in call
    versions.remove("6.12.117-1~deb12u1")
    with pytest.raises(UserError, match=r"6\.12\.119.*boot the newest kernel, or give the source"):
        build(machine)


def test_apts_versions_are_read() -> None:
    line = "linux-source-6.12 | 6.12.117-1~deb12u1 | http://deb.debian.org/debian stable/main all"
    done = subprocess.CompletedProcess([], 0, stdout=f"{line}\nN: a note\n", stderr="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "run", lambda *_, **__: done)
        assert installed._versions("linux-source-6.12") == ["6.12.117-1~deb12u1"]


@pytest.mark.parametrize("release", ["", "..", "../../etc", "a b", "6.12;reboot"])
def test_a_name_that_is_not_a_kernel_release_is_refused(machine: Path, release: str) -> None:
    with pytest.raises(UserError, match="not a kernel release"):
        find(machine, release)


def test_missing_headers_are_named_with_their_package(machine: Path) -> None:
    with pytest.raises(UserError, match=r"run: apt install linux-headers-6\.13-amd64$"):
        find(machine, "6.13-amd64")


def test_a_missing_compiler_is_named_with_its_package(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "bin" / "gcc").unlink()
    monkeypatch.setenv("PATH", str(machine / "bin"))
    with pytest.raises(UserError, match="not found: gcc; run: apt install gcc"):
        find(machine)


def test_an_old_kernel_is_refused(machine: Path) -> None:
    (machine / "bin" / "version").write_text("6.1.164\n")
    with pytest.raises(UserError, match=r"6\.1\.164 is too old .*6\.12 or newer"):
        find(machine)


def test_headers_without_a_version_are_damaged(machine: Path) -> None:
    (machine / "bin" / "version").write_text("")
    with pytest.raises(UserError, match=r"damaged.*--reinstall linux-headers"):
        find(machine)


def test_the_command_prints_what_to_do_next(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_kernel, "find_installed", lambda release: find(machine, release))
    output = machine / "my modules"
    command = ["modules", "--for", RELEASE, "--source", str(machine / "linux"), "-o", str(output)]
    result = CliRunner().invoke(cli_kernel.app, command)
    assert result.exit_code == 0, result.output
    assert f"{output}/feedbac-iosched.ko\n" in result.output
    assert f"sudo insmod '{output}'/isoblk_share.ko && " in result.output
    assert f"-t /lib/modules/{RELEASE}/updates/isoblk '{output}'/*.ko && " in result.output
    assert f"sudo depmod {RELEASE}\n" in result.output


def test_plain_make_refuses_with_the_next_step(tmp_path: Path) -> None:
    """kernel/Makefile, whose errors come before any compilation."""
    make = ["make", "-s", "-C", str(kernel_tree()), "modules", f"KDIR={tmp_path}"]
    done = subprocess.run(make, text=True, capture_output=True, check=False)
    assert "no kernel headers" in done.stderr
    assert "apt install linux-headers-" in done.stderr
    (tmp_path / "Makefile").touch()
    done = subprocess.run(make, text=True, capture_output=True, check=False)
    assert "no block/elevator.h" in done.stderr
    assert done.returncode == 2
