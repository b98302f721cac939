# SPDX-License-Identifier: GPL-2.0-only
"""Building, caching and cleaning kernels, with a make and a compiler that only pretend."""

import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from isoblk import kernel
from isoblk.campaign.execute import Bench
from isoblk.cli import run as cli_run
from isoblk.errors import RunError, UserError
from isoblk.kernel import (
    Kernel,
    Request,
    apt,
    build,
    build_modules,
    find,
    hold,
    host_library,
    source,
    store,
    tools,
)
from isoblk.kernel.builder import failure, key_of
from isoblk.lab import lab as lab_of_guests
from isoblk.paths import presets_dir

MAKE = """\
#!/bin/sh
fake=$(dirname "$0")
echo "$*" >> "$fake/calls"
for word; do
    case $word in
    O=*) out=${word#O=} ;;
    M=*) out=${word#M=} at=$out/ ;;
    KCONFIG_ALLCONFIG=*) fragment=${word#*=} ;;
    esac
    last=$word
done
[ -z "$MAKEFLAGS$KCFLAGS" ] || exit 9
if [ -n "$fragment" ]; then
    grep -v "$(cat "$fake/refuse" 2>/dev/null || echo NOTHING)" "$fragment" > "$out/.config"
    exit
fi
[ -e "$out/object" ] && echo resumed >> "$fake/calls"
echo "  CC      object"
touch "$out/object"
mode=$(cat "$fake/mode" 2>/dev/null)
case $mode in
fail) echo "${at}x.c:3:1: error: expected ';'"; echo "make: *** [x.o] Error 1"; exit 2 ;;
full) echo "cc1: fatal error: x.s: No space left on device"; exit 2 ;;
hang) touch "$fake/hanging"; while echo "  CC      more"; do sleep 0.02; done; exit 2 ;;
wait) touch "$fake/hanging"; while [ ! -e "$fake/go" ]; do sleep 0.02; done ;;
esac
if [ -e "$out/Kbuild" ]; then
    for name in blkload isoblk_vdisk; do echo "  LD [M]  $name.ko"; touch "$out/$name.ko"; done
    exit
fi
mkdir -p "$out/include/config" "$out/scripts" "$out/drivers/block/.tmp" "$out/kernel"
echo 6.12.117 > "$out/include/config/kernel.release"
for file in vmlinux vmlinux.o kernel/sched.o kernel/.sched.o.cmd scripts/modpost.o Module.symvers \\
    drivers/block/null_blk.ko linux; do touch "$out/$file"; done
echo drivers/block/null_blk.o > "$out/modules.order"
echo "  LINK    linux"
"""

GCC = """\
#!/bin/sh
[ "$1" = --version ] && echo "gcc $(cat "$(dirname "$0")/version" 2>/dev/null || echo 12)"
while [ $# -gt 0 ]; do [ "$1" = -o ] && echo library > "$2"; shift; done
exit 0
"""


class Listener:
    """Remembers what a build said; may act on a note."""

    def __init__(self, on_note: Callable[[], object] = lambda: None) -> None:
        self.stages: list[str] = []
        self.notes: list[str] = []
        self.steps = 0
        self._on_note = on_note

    def stage(self, text: str, total: int | None = None) -> None:
        self.stages.append(text)

    def step(self) -> None:
        self.steps += 1

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._on_note()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with pretended tools in bin/, a small source in linux/ and an empty cache."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in tools.BUILD_TOOLS:
        text = {"make": MAKE, "gcc": GCC, "ld": GCC}.get(name)
        if text:
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        elif name not in ("tar", "xz"):
            (programs / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MAKEFLAGS", "-j --jobserver-auth=3,4")
    monkeypatch.setenv("KCFLAGS", "-O0")
    repository = tmp_path / "kernel"
    for name, text in {
        "config/uml.config": "CONFIG_ON=y\nCONFIG_OTHER=m\n",
        "config/debug.config": "CONFIG_DEBUG=y\n",
        "uml/host.c": "int x;\n",
        "uml/replace.c": "int z;\n",
        "Kbuild": "obj-m += blkload.o\n",
        "load/blkload.c": "int y;\n",
        "pins.toml": "pin = []\n",
    }.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    monkeypatch.setattr("isoblk.kernel.builder.kernel_tree", lambda: repository)
    monkeypatch.setattr("isoblk.kernel.modules.kernel_tree", lambda: repository)
    monkeypatch.setattr("isoblk.kernel.pins.kernel_tree", lambda: repository)
    make_tree(tmp_path / "linux")
    return tmp_path


def make_tree(tree: Path) -> None:
    for name, text in {
        "Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nNAME = x\n",
        "Kconfig": "config ON\nconfig OTHER\nconfig DEBUG\n",
        "arch/um/Makefile": "",
        "block/blk-core.c": "int z;\n",
        "scripts/Makefile.build": "",
        "sound/card.c": "int noise;\n",
        "sound/Kconfig": "",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


def make_tarball(lab: Path, name: str = "linux.tar.xz") -> Path:
    path = lab / name
    with tarfile.open(path, "w:xz") as archive:
        archive.add(lab / "linux", "linux-6.12")
    return path


def make_kernel(lab: Path, listener: Listener | None = None, debug: bool = False) -> Kernel:
    return build(Request(source=lab / "linux", debug=debug), listener or Listener())


def calls(lab: Path) -> list[str]:
    path = lab / "bin" / "calls"
    return path.read_text().splitlines() if path.exists() else []


def leftovers(lab: Path) -> list[str]:
    """A failed build must not leave anything that looks finished or is hidden."""
    root = lab / "cache"
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.name in ("ready.json", "ready", "source.json")
        or path.name.startswith("tmp.")
        or (path.name.startswith(".") and path.name != ".config")
    )


def test_built_kernel_is_found_whole(lab: Path) -> None:
    listener = Listener()
    made = make_kernel(lab, listener)
    assert (made.version, made.debug) == ("6.12.117", False)
    assert made.linux.is_file()
    assert made.module("null-blk") == made.build / "drivers/block/null_blk.ko"
    assert made.module("null_blk").is_file()
    assert listener.steps == 2
    assert kernel.find() == kernel.find("6.12") == kernel.find("6.12.117") == made
    assert kernel.list_kernels() == [made]
    with pytest.raises(UserError, match="without the module nosuch"):
        made.module("nosuch")


def test_ready_kernel_is_not_built_again(lab: Path) -> None:
    made = make_kernel(lab)
    before = calls(lab)
    assert make_kernel(lab) == made
    assert calls(lab) == before


def test_the_build_directory_keeps_only_files_that_modules_need(lab: Path) -> None:
    target = make_kernel(lab).build
    for name in ("linux", "Module.symvers", "scripts/modpost.o", "drivers/block/null_blk.ko"):
        assert (target / name).exists(), name
    for name in ("vmlinux", "vmlinux.o", "kernel/sched.o", "kernel/.sched.o.cmd"):
        assert not (target / name).exists(), name


@pytest.mark.parametrize(
    "changed",
    ["config/uml.config", "compiler", "source"],
)
def test_whatever_determines_a_kernel_is_in_its_key(lab: Path, changed: str) -> None:
    made = make_kernel(lab)
    if changed == "compiler":
        (lab / "bin" / "version").write_text("13")
    elif changed == "source":
        (lab / "linux/block/blk-core.c").write_text("int changed;\n")
    else:
        (lab / "kernel" / changed).write_text("CONFIG_ON=y\n")
    assert make_kernel(lab).key != made.key


def test_debug_kernel_is_another_one(lab: Path) -> None:
    plain, debug = make_kernel(lab), make_kernel(lab, debug=True)
    assert plain.key != debug.key
    assert "debug" in debug.key
    assert kernel.find(debug=True) == debug
    assert kernel.find() == plain


def test_a_kernel_of_a_bisection_is_not_found_by_its_version(lab: Path) -> None:
    apart = build(Request(source=lab / "linux", apart=True), Listener())
    with pytest.raises(UserError, match=r"no kernel 6\.12 has been built"):
        find("6.12")
    assert kernel.ready_kernels() == [apart]
    before = calls(lab)
    # A later build finds it, and does not compile it again.
    assert make_kernel(lab).key == apart.key
    assert find("6.12").key == apart.key
    build(Request(source=lab / "linux", apart=True), Listener())
    assert find("6.12").key == apart.key
    assert [one for one in calls(lab)[len(before) :] if "linux" in one.split()] == []


@pytest.fixture
def archive(lab: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Debian's archive, with every version, 6.12.118-1 the newest; which were fetched."""
    fetched: list[str] = []

    def deb_of(version: str) -> apt.Deb:
        fetched.append(version)
        (lab / "linux.deb").write_text(version)
        return apt.Deb("linux-source-6.12", version, lab / "linux.deb")

    def unpack(command: list[str], archive: Path) -> None:
        if command[0] == "dpkg-deb":
            there = Path(command[-1]) / "usr/src"
            there.mkdir(parents=True)
            make_tarball(lab).rename(there / "linux-source-6.12.tar.xz")
        else:
            subprocess.run(command, check=True)

    monkeypatch.setattr(source, "extract", unpack)
    monkeypatch.setattr(source, "_installed", lambda package: None)
    monkeypatch.setattr(apt, "download", lambda offer, directory: deb_of(offer.version))
    monkeypatch.setattr(apt, "fetch", lambda version, suite, directory: deb_of("6.12.118-1"))
    return fetched


def pin(lab: Path, version: str, content: str) -> None:
    """Pin a package of the fake archive, whose file has a version's text."""
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    values = {"series": "6.12", "version": version, "suite": "trixie", "sha256": sha256}
    with (lab / "kernel" / "pins.toml").open("w") as file:
        file.write("[[pin]]\n" + "".join(f'{name} = "{text}"\n' for name, text in values.items()))


def test_a_series_is_built_from_the_package_that_is_pinned(lab: Path, archive: list[str]) -> None:
    pin(lab, "6.12.117-1", content="6.12.117-1")
    for _ in range(2):
        found = source.resolve("6.12", None, None, Listener())
        assert found.identity == "linux-source-6.12_6.12.117-1"
    assert archive == ["6.12.117-1"]


def test_a_package_with_another_checksum_than_the_pinned_is_not_used(
    lab: Path, archive: list[str]
) -> None:
    pin(lab, "6.12.117-1", content="what was pinned")
    listener = Listener()
    found = source.resolve("6.12", None, None, listener)
    assert found.identity == "linux-source-6.12_6.12.118-1"
    (note,) = listener.notes
    assert note.startswith("the pinned linux-source-6.12_6.12.117-1 cannot be fetched: ")
    # It is not asked for again at once.
    assert source.resolve("6.12", None, None, Listener()) == found
    assert archive == ["6.12.117-1", "6.12.118-1"]


def test_a_suite_that_is_named_has_its_own_package(lab: Path, archive: list[str]) -> None:
    pin(lab, "6.12.117-1", content="6.12.117-1")
    found = source.resolve("6.12", None, "trixie", Listener())
    assert found.identity == "linux-source-6.12_6.12.118-1"


def test_a_source_that_a_bisection_unpacked_does_not_stand_for_its_series(
    lab: Path, monkeypatch: pytest.MonkeyPatch, archive: list[str]
) -> None:
    fetched = archive
    deb_of = apt.download
    old = apt.Offer("linux-source-6.12", "6.12.95-1", "trixie")
    assert source.resolve(None, old, None, Listener()).identity == old.identity
    assert source.resolve(None, old, None, Listener()).identity == old.identity
    asked = source.resolve("6.12", None, None, Listener())
    assert asked.identity == "linux-source-6.12_6.12.118-1"
    assert source.resolve("6.12", None, None, Listener()) == asked
    assert fetched == ["6.12.95-1", "6.12.118-1"]
    # A source that a bisection unpacked stands for its series once it is the archive's newest.
    newest = apt.Offer("linux-source-6.12", "6.12.119-1", "trixie")
    source.resolve(None, newest, None, Listener())
    shutil.rmtree(lab / "cache/sources" / asked.identity)
    monkeypatch.setattr(apt, "fetch", lambda version, suite, directory: deb_of(newest, directory))
    assert source.resolve("6.12", None, None, Listener()).identity == newest.identity
    assert source.resolve("6.12", None, None, Listener()).identity == newest.identity
    assert fetched[2:] == ["6.12.119-1", "6.12.119-1"]


def test_a_revision_is_unpacked_once_and_the_repository_stays_as_it_is(lab: Path) -> None:
    def git(*words: str) -> str:
        options = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.run(
            ["git", "-C", str(lab / "linux"), *options, *words],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    (lab / "linux/block/blk-core.c").write_text("being edited")
    revision = source.Revision(lab / "linux", git("rev-parse", "HEAD^{tree}"))
    made = build(Request(source=revision, apart=True), Listener())
    assert made.source == revision.identity
    assert (made.tree / "block/blk-core.c").read_text() == "int z;\n"
    assert not (made.tree / "sound/card.c").exists()
    assert (lab / "linux/block/blk-core.c").read_text() == "being edited"
    listener = Listener()
    assert build(Request(source=revision, apart=True), listener).key == made.key
    assert listener.stages == []


def test_key_parts_do_not_run_together() -> None:
    assert key_of("6.12", "ab", "c", "r", False) != key_of("6.12", "a", "bc", "r", False)


def test_kernel_of_another_configuration_is_not_used(lab: Path) -> None:
    make_kernel(lab)
    (lab / "kernel/config/uml.config").write_text("CONFIG_ON=y\n")
    with pytest.raises(UserError, match=r"another configuration.*run: isoblk kernel build"):
        kernel.find()


def test_no_kernel_says_how_to_build_one(lab: Path) -> None:
    with pytest.raises(UserError, match=r"run: isoblk kernel build$"):
        kernel.find()
    with pytest.raises(UserError, match=r"run: isoblk kernel build --version 7\.2 --debug$"):
        kernel.find("7.2.12", debug=True)


def test_line_of_the_fragment_without_effect_is_named(lab: Path) -> None:
    (lab / "bin" / "refuse").write_text("CONFIG_OTHER")
    with pytest.raises(UserError, match=r"did not accept: CONFIG_OTHER=m \(is n\)"):
        make_kernel(lab)
    assert leftovers(lab) == []


def test_failed_compilation_shows_cause_log_and_last_lines(lab: Path) -> None:
    (lab / "bin" / "mode").write_text("fail")
    listener = Listener()
    with pytest.raises(RunError, match=r"x\.c:3:1: error: expected ';'.*build\.log") as caught:
        make_kernel(lab, listener)
    assert "\n" not in str(caught.value)
    assert listener.notes[-1].endswith("Error 1")
    assert leftovers(lab) == []


def test_full_disk_during_compilation_names_directory_and_free_space(lab: Path) -> None:
    (lab / "bin" / "mode").write_text("full")
    with pytest.raises(UserError, match=rf"{lab}/cache.*disk full \(\d+ MB free\)"):
        make_kernel(lab)
    assert leftovers(lab) == []
    (lab / "bin" / "mode").unlink()
    assert make_kernel(lab).linux.is_file()


def test_full_disk_while_writing_leaves_nothing_ready(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.raises(UserError, match="disk full"):
        make_kernel(lab)
    assert leftovers(lab) == []


def test_cache_that_is_a_file_is_the_users_error(lab: Path) -> None:
    (lab / "cache").write_text("")
    with pytest.raises(UserError, match=r"cannot write the cache.*ISOBLK_CACHE"):
        make_kernel(lab)


def test_no_compiler_names_the_packages(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match=r"gcc, ld, make.*run: apt install gcc binutils make"):
        make_kernel(lab)
    assert not (lab / "cache").exists()


def test_two_builds_at_once_make_one_kernel(lab: Path) -> None:
    (lab / "bin" / "mode").write_text("wait")
    made: list[Kernel] = []
    waiting = Listener(on_note=(lab / "bin" / "go").touch)
    workers = [
        threading.Thread(target=lambda: made.append(make_kernel(lab, waiting))) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert len(made) == 2
    assert made[0] == made[1]
    assert [note for note in waiting.notes if "another process is building" in note]
    assert sum(call.endswith("linux modules") for call in calls(lab)) == 1


def test_killed_build_resumes_once_its_make_has_ended(lab: Path) -> None:
    (lab / "bin" / "mode").write_text("wait")
    program = (
        "import sys; from pathlib import Path; import isoblk.kernel.builder as b;"
        "lab = Path(sys.argv[1]); b.kernel_tree = lambda: lab / 'kernel';"
        "from isoblk.kernel import Silent; b.build(b.Request(source=lab / 'linux'), Silent())"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(lab)]) as victim:
        while not (lab / "bin" / "hanging").exists():
            assert victim.poll() is None
        victim.kill()
    assert kernel.list_kernels() == []
    (lab / "bin" / "mode").unlink()
    # The killed build's make goes on until it is let go.
    listener = Listener(on_note=(lab / "bin" / "go").touch)
    assert make_kernel(lab, listener).linux.is_file()
    assert [note for note in listener.notes if "another process is building" in note]
    assert "resumed" in calls(lab)


def test_interrupt_ends_make_and_leaves_the_lock_free(lab: Path) -> None:
    (lab / "bin" / "mode").write_text("hang")

    class Impatient(Listener):
        def step(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_kernel(lab, Impatient())
    (lock,) = (lab / "cache/locks").glob("kernel-*.lock")
    with lock.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_tarball_is_unpacked_once_without_drivers_that_are_not_built(lab: Path) -> None:
    tarball = make_tarball(lab)
    listener = Listener()
    first = source.resolve(None, tarball, None, listener)
    assert first.version == "6.12.117"
    assert (first.tree / "block/blk-core.c").is_file()
    assert (first.tree / "sound/Kconfig").is_file()
    assert not (first.tree / "sound/card.c").exists()
    again = Listener()
    assert source.resolve("6.12", tarball, None, again) == first
    assert not any("unpacking" in stage for stage in again.stages)


def test_damaged_tarball_is_one_line_and_leaves_nothing(lab: Path) -> None:
    tarball = make_tarball(lab)
    data = tarball.read_bytes()
    for damage in (data[: len(data) // 2], b"\0" * 64 + data[64:], b"", b"no archive at all"):
        tarball.write_bytes(damage)
        with pytest.raises(UserError) as caught:
            build(Request(source=tarball), Listener())
        assert str(tarball) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert leftovers(lab) == []


def test_archive_of_something_else_is_refused(lab: Path) -> None:
    (lab / "linux/arch/um/Makefile").unlink()
    with pytest.raises(UserError, match=r"linux\.tar\.xz: not a kernel source"):
        source.resolve(None, make_tarball(lab), None, Listener())
    with pytest.raises(UserError, match="not a kernel source"):
        source.resolve(None, lab / "linux", None, Listener())
    assert leftovers(lab) == []


def test_full_disk_while_unpacking_is_told(lab: Path) -> None:
    error = source.unpack_error("tar: x: Cannot write: No space left on device\n", lab / "a.tar")
    assert "disk full" in str(error)


def test_dirty_source_tree_is_refused_with_the_remedy(lab: Path) -> None:
    (lab / "linux/.config").touch()
    with pytest.raises(UserError, match=r"not clean.*make -C .* ARCH=um mrproper"):
        make_kernel(lab)


def test_source_of_another_version_is_refused(lab: Path) -> None:
    with pytest.raises(UserError, match=r"Linux 6\.12\.117, not 7\.2"):
        source.resolve("7.2", lab / "linux", None, Listener())


@pytest.mark.parametrize("version", ["", "6", "6.12.1", "linux", "6.12; rm"])
def test_odd_version_is_refused(lab: Path, version: str) -> None:
    with pytest.raises(UserError, match="not a kernel version"):
        source.resolve(version, None, None, Listener())


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server's address and its directory."""
    root = tmp_path / "web"
    root.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", root
        server.shutdown()
        thread.join()


def test_a_source_from_a_url_is_identified_by_its_checksum(
    lab: Path, web: tuple[str, Path]
) -> None:
    address, root = web
    tarball = make_tarball(root.parent, "web/linux-6.12.tar.xz")
    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    listener = Listener()
    given = source.named(f"{address}/linux-6.12.tar.xz#sha256={digest.upper()}")
    found = source.resolve(None, given, None, listener)
    assert "fetching linux-6.12.tar.xz" in listener.stages
    # As from a file; and not fetched again.
    assert found == source.resolve(None, tarball, None, Listener())
    tarball.unlink()
    assert source.resolve("6.12", given, None, Listener()) == found
    with pytest.raises(UserError, match=rf"{address}.*: the source is Linux 6.12.117, not 7.2"):
        source.resolve("7.2", given, None, Listener())


def test_a_url_with_another_content_leaves_nothing(lab: Path, web: tuple[str, Path]) -> None:
    address, root = web
    (root / "x.tar.xz").write_text("something else")
    given = source.named(f"{address}/x.tar.xz#sha256={'0' * 64}")
    with pytest.raises(UserError, match=r"the SHA-256 is [0-9a-f]{64}, not 0{64}; compare"):
        source.resolve(None, given, None, Listener())
    assert list((lab / "cache/sources").iterdir()) == []


def test_a_url_that_cannot_be_fetched_is_one_line(lab: Path, web: tuple[str, Path]) -> None:
    given = source.named(f"{web[0]}/nosuch.tar.xz#sha256={'0' * 64}")
    with pytest.raises(RunError, match=r"nosuch\.tar\.xz: cannot fetch: HTTP Error 404"):
        source.resolve(None, given, None, Listener())
    closed = source.named(f"http://127.0.0.1:1/x#sha256={'0' * 64}")
    with pytest.raises(RunError, match=r"cannot fetch: .*refused"):
        source.resolve(None, closed, None, Listener())


@pytest.mark.parametrize(
    "text", ["https://x.example/a.tar.xz", "https://x.example/a#sha256=12", "ftp://x/a#sha256=0"]
)
def test_a_url_has_a_checksum(text: str) -> None:
    with pytest.raises(UserError, match="#sha256="):
        source.named(text)


def test_a_name_without_a_scheme_is_a_path() -> None:
    assert source.named("linux-6.12.tar.xz") == Path("linux-6.12.tar.xz")


def test_all_that_is_missing_is_one_command(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (lab / "empty").mkdir()
    monkeypatch.setenv("PATH", str(lab / "empty"))
    monkeypatch.setattr(tools, "SBIN", str(lab / "empty"))
    with pytest.raises(UserError) as caught:
        build(Request(arch="x86_64"), Listener())
    assert caught.value.next == (
        "run: apt install gcc binutils make flex bison bc perl-base tar xz-utils libc6-dev"
        " libelf-dev kmod"
    )


def test_missing_source_is_the_users_error(lab: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        source.resolve(None, lab / "nosuch", None, Listener())


def test_modules_are_built_once_and_again_when_their_source_changes(lab: Path) -> None:
    made = make_kernel(lab)
    first = kernel.build_modules(made)
    assert {path.name for path in first.glob("*.ko")} == {"blkload.ko", "isoblk_vdisk.ko"}
    before = calls(lab)
    assert kernel.build_modules(made) == first
    assert calls(lab) == before
    # Leftovers of a build in the tree are not sources; neither is documentation.
    (lab / "kernel/load/blkload.o").touch()
    (lab / "kernel/load/blkload.mod.c").touch()
    (lab / "kernel/README.md").touch()
    assert kernel.build_modules(made) == first
    (lab / "kernel/load/blkload.c").write_text("int changed;\n")
    second = kernel.build_modules(made)
    (lab / "bin" / "version").write_text("13")
    assert len({first, second, kernel.build_modules(made)}) == 3


def test_schedulers_of_another_tree_are_built_apart_from_all_else(lab: Path) -> None:
    made = make_kernel(lab)
    other = lab / "other"
    for name in ("sched/Kbuild", "sched/one.c", "include/compat.h", "load/broken.c", "Kbuild"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text(name)
    first = kernel.build_schedulers(made, other)
    assert first.name.startswith(f"{made.key}-sched-")
    (other / "load/broken.c").write_text("changed")
    assert kernel.build_schedulers(made, other) == first
    (other / "include/compat.h").write_text("changed")
    assert kernel.build_schedulers(made, other) != first
    with pytest.raises(UserError, match="no schedulers of isoblk"):
        kernel.build_schedulers(made, lab / "linux")
    # They go with their kernel.
    assert made.key in kernel.clean().removed
    assert not first.exists()


def test_the_preloaded_library_is_built_with_the_modules_and_the_kernel_stays(lab: Path) -> None:
    made = make_kernel(lab)
    first = kernel.host_library(made)
    assert first.read_text() == "library\n"
    assert first.parent == kernel.build_modules(made) == kernel.ready_modules(made)
    (lab / "kernel/uml/host.c").write_text("int changed;\n")
    assert make_kernel(lab) == made
    assert kernel.ready_modules(made) is None
    assert kernel.host_library(made).parent != first.parent


def test_a_library_that_does_not_compile_leaves_a_log_and_nothing_else(lab: Path) -> None:
    made = make_kernel(lab)
    gcc = lab / "bin" / "gcc"
    gcc.write_text(
        f"{GCC}".replace(
            "while", "case $* in *host.c*) echo 'host.c:1: error: no' >&2; exit 1;; esac\nwhile"
        )
    )
    with pytest.raises(
        RunError, match=r"building host\.so failed: host\.c:1: error: no.*modules\.log"
    ):
        kernel.build_modules(made)
    assert (made.dir / "modules.log").read_text() == "host.c:1: error: no\n"
    assert list((lab / "cache/modules").iterdir()) == []


@pytest.mark.parametrize("name", ["a b", "a:b", "a,b", "a'b", "a$b"])
def test_a_cache_whose_name_make_would_split_is_refused(
    lab: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(lab / name))
    with pytest.raises(UserError, match=r"blanks, colons or the like.*set ISOBLK_CACHE"):
        make_kernel(lab)
    assert not (lab / name).exists()


def test_modules_without_a_compiler_are_used_if_ready(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_kernel(lab)
    first = kernel.build_modules(made)
    monkeypatch.setenv("PATH", "")
    assert kernel.build_modules(made) == first
    (lab / "kernel/load/blkload.c").write_text("int changed;\n")
    with pytest.raises(UserError, match="apt install gcc"):
        kernel.build_modules(made)


def test_modules_that_do_not_compile_leave_a_log_and_nothing_else(lab: Path) -> None:
    made = make_kernel(lab)
    (lab / "bin" / "mode").write_text("fail")
    with pytest.raises(RunError, match=r"error: expected.*modules\.log") as caught:
        kernel.build_modules(made)
    # The user's file, not the copy that was compiled.
    assert f"failed: {lab}/kernel/x.c:3:1: " in str(caught.value)
    assert list((lab / "cache/modules").iterdir()) == []


def test_clean_removes_all_kernels_that_are_not_in_use(lab: Path) -> None:
    plain, debug = make_kernel(lab), make_kernel(lab, debug=True)
    modules = kernel.build_modules(plain)
    with kernel.hold(debug):
        done = kernel.clean()
    assert (done.removed, done.busy) == ((plain.key,), (debug.key,))
    assert not modules.exists()
    assert kernel.list_kernels() == [debug]
    with pytest.raises(UserError, match="no longer in the cache"), kernel.hold(plain):
        pass


def test_a_kernel_stays_while_a_study_runs_on_it(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_kernel(lab)
    cleaned: list[store.Cleaned] = []

    def clean_meanwhile(machine: object, chosen: Kernel, *others: object) -> Bench:
        cleaned.append(kernel.clean())
        raise RunError("enough")

    monkeypatch.setattr(lab_of_guests, "find", lambda version, debug: made)
    monkeypatch.setattr(lab_of_guests, "make_bench", clean_meanwhile)
    CliRunner().invoke(cli_run.app, [str(presets_dir().parent / "quick.toml")])
    assert [one.busy for one in cleaned] == [(made.key,)]
    assert kernel.list_kernels() == [made]


def test_an_error_while_a_kernel_is_in_use_is_not_blamed_on_the_cache(lab: Path) -> None:
    with pytest.raises(PermissionError), kernel.hold(make_kernel(lab)):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_clean_takes_beginnings_of_keys_and_refuses_unknown_ones(lab: Path) -> None:
    plain, debug = make_kernel(lab), make_kernel(lab, debug=True)
    with pytest.raises(UserError, match="no kernel 9"):
        kernel.clean(["6.12", "9"])
    kernel.clean(["6.12.117-debug"])
    assert kernel.list_kernels() == [plain]
    assert not debug.dir.exists()


def test_clean_keeps_sources_unless_told_and_needed(lab: Path) -> None:
    tarball = make_tarball(lab)
    made = build(Request(source=tarball), Listener())
    debug = build(Request(source=tarball, debug=True), Listener())
    home = lab / "cache/sources" / made.source
    kernel.clean([debug.key], sources=True)
    assert home.is_dir()
    kernel.clean([made.key])
    assert home.is_dir()
    kernel.clean(sources=True)
    assert not home.exists()


def test_clean_removes_leftovers_of_killed_processes_but_not_of_running_ones(lab: Path) -> None:
    (lab / "cache/sources/.a.part").mkdir(parents=True)
    (lab / "cache/sources/.fetch.xyz").mkdir()
    with store.lock("source-fetch"):
        kernel.clean()
    assert [path.name for path in (lab / "cache/sources").iterdir()] == [".fetch.xyz"]


@contextmanager
def as_somebody_else(*places: Path) -> Iterator[None]:
    """Without the right to write there; root may write anywhere, so give up root."""
    for place in places:
        for path in (place, *place.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for place in places:
            for path in (place, *place.rglob("*")):
                path.chmod(0o755)


@pytest.fixture
def reachable(tmp_path: Path) -> None:
    """Let everybody reach the test's directory."""
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o011)


@pytest.mark.usefixtures("reachable")
def test_a_cache_that_may_only_be_read_is_used(lab: Path) -> None:
    made = make_kernel(lab)
    modules = build_modules(made)
    with as_somebody_else(lab / "cache"):
        assert find() == made
        with hold(made):
            assert build_modules(made) == modules
            assert host_library(made).is_file()
    # Missing modules cannot be built there.
    (lab / "kernel/load/blkload.c").write_text("int changed;\n")
    with (
        as_somebody_else(lab / "cache"),
        pytest.raises(UserError, match=r"cannot write the cache: .*set ISOBLK_CACHE"),
    ):
        build_modules(made)


@pytest.mark.usefixtures("reachable")
def test_a_kernel_in_use_from_a_read_only_cache_is_kept(lab: Path) -> None:
    made = make_kernel(lab)
    with as_somebody_else(lab / "cache"):
        using = hold(made)
        using.__enter__()
    try:
        assert kernel.clean().busy == (made.key,)
    finally:
        using.__exit__(None, None, None)


@pytest.mark.usefixtures("reachable")
def test_a_cache_that_cannot_be_read_is_a_one_line_error(lab: Path) -> None:
    make_kernel(lab)
    (lab / "cache/kernels").chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(UserError, match="cannot read the cache: Permission denied"):
            find()
    finally:
        if root:
            os.seteuid(0)
        (lab / "cache/kernels").chmod(0o755)


def test_kernel_whose_own_source_is_gone_is_not_ready(lab: Path) -> None:
    make_kernel(lab)
    (lab / "linux").rename(lab / "elsewhere")
    assert kernel.list_kernels() == []
    assert build(Request(source=lab / "elsewhere"), Listener()).linux.is_file()


def test_damaged_ready_file_means_not_ready(lab: Path) -> None:
    made = make_kernel(lab)
    (made.dir / "ready.json").write_text("{")
    assert kernel.list_kernels() == []
    assert make_kernel(lab).linux.is_file()


def test_cause_is_the_first_error_not_makes_last_word() -> None:
    lines = ["  CC x", "x.c:1:2: error: first", "y.c: error: second", "make: *** [x] Error 1"]
    assert "x.c:1:2: error: first" in str(failure("Linux", lines, Path("log")))
    assert "failed: [x] Error 1;" in str(failure("Linux", lines[-1:], Path("log")))


@pytest.mark.parametrize(
    ("release", "version", "same"),
    [
        ("6.12.117", "6.12", True),
        ("6.12.0-rc1", "6.12", True),
        ("6.1.2", "6.12", False),
        ("6.120.1", "6.12", False),
        ("7.2.0+", "7.2.0", True),
    ],
)
def test_version_is_compared_by_its_parts(release: str, version: str, same: bool) -> None:
    assert store.matches(release, version) is same
