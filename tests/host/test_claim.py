# SPDX-License-Identifier: GPL-2.0-only
"""No disk is written that was not claimed, and none is claimed that is in use or has the only copy
of data: on loop devices, as an attacker or an unlucky user would arrange them."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isoblk.cachectl.volumes import open_ssd
from isoblk.caches.ondisk import contents
from isoblk.caches.ondisk.fsck import examine, identity
from isoblk.errors import RunError, UserError
from isoblk.machine import host, origins, system
from isoblk.machine.blockdev import find_disk, find_volume
from isoblk.machine.claim import CHECK, LOAD, ORIGIN, SCRATCH, SSD, WATCH, Purpose, claim
from isoblk.machine.detached import refuse_newer_elsewhere
from isoblk.machine.mapper import dmsetup
from tests.host.conftest import Machine
from tests.unit.cacheimage import Image, make_image

MIB = 1 << 20
DEADLINE_S = 60
LOAD_OF_WRITES = """\
name = "writes"
device = "fast"
scheduler = "none"

[run]
runtime = "1s"

[workload]
rw = "randwrite"
bs = "64k"

[[tenant]]
name = "t"
"""

Loop = Callable[[], str]


def _number(device: str) -> int:
    return Path(device).stat().st_rdev


def _run(machine: Machine, device: str, *more: str) -> "subprocess.CompletedProcess[str]":
    study = machine.work / "study.toml"
    study.write_text(LOAD_OF_WRITES)
    return machine.isoblk("run", str(study), "--machine", "host", "--device", device, *more)


def _open_files() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def _claim(path: str, purpose: Purpose, wipe: str | None = None) -> None:
    with claim(find_volume(path), purpose, wipe):
        pass


@contextmanager
def _partition(device: str) -> Iterator[str]:
    """The first 4 MiB of a disk."""
    system.run_tool("addpart", device, "1", "2048", "8192")
    try:
        yield f"{device}p1"
    finally:
        system.run_tool("delpart", device, "1")


@contextmanager
def _loop_of(path: str, *more: str) -> Iterator[str]:
    device = system.run_tool("losetup", "--find", "--show", *more, path).strip()
    try:
        yield device
    finally:
        system.run_tool("losetup", "--detach", device)


@contextmanager
def _mounted(device: str, place: Path) -> Iterator[None]:
    system.run_tool("mkfs.ext4", "-q", "-F", device)
    place.mkdir(exist_ok=True)
    system.run_tool("mount", device, str(place))
    try:
        yield
    finally:
        system.run_tool("umount", str(place))


# -- disks of isoblk --


@pytest.mark.parametrize("wipes", [False, True])
@pytest.mark.parametrize("lost", ["", "copy 0", "copy 1", "the last commit"])
def test_dirty_blocks_of_a_cache_survive_a_run_that_is_pointed_at_their_ssd(
    machine: Machine, loop: Loop, *, wipes: bool, lost: str
) -> None:
    device = loop()
    image = make_image(machine.work / "ssd", clean=lost != "the last commit", ssd=32_768)
    if lost.startswith("copy"):
        image.damage(4096 * int(lost[-1]), bytes(4096))
    before = image.path.read_bytes()
    Path(device).write_bytes(before)
    refused = _run(machine, device, *(["--wipe", device] if wipes else []))
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "is the SSD of a cache" in refused.stderr
    assert Path(device).read_bytes() == before


@pytest.mark.parametrize("purpose", [LOAD, SSD])
def test_dirty_blocks_on_a_partition_survive_a_wipe_of_its_disk(
    machine: Machine, loop: Loop, purpose: Purpose
) -> None:
    device = loop()
    system.run_tool("mkswap", device)
    image = make_image(machine.work / "ssd", clean=False)
    with _partition(device) as part:
        Path(part).write_bytes(image.path.read_bytes())
        with pytest.raises(UserError, match=rf"^{device}: {part} is the SSD of a cache with 40"):
            _claim(device, purpose, device)
        make_image(image.path, dirty=0)
        Path(part).write_bytes(image.path.read_bytes())
        _claim(device, purpose, device)


def _cache_of(origin: str, ssd: str, image: Image) -> None:
    """Put an image on an SSD, as that of the cache of a device."""
    named = f"id:{origins.word(find_volume(origin).sys, dmsetup)}"
    image.newest = replace(image.newest, identity=named)
    image.write()
    Path(ssd).write_bytes(image.path.read_bytes())


@pytest.mark.parametrize("purpose", [LOAD, SSD])
@pytest.mark.parametrize(("clean", "wipes"), [(False, True), (True, False)])
def test_a_disk_is_not_overwritten_while_an_ssd_has_newer_blocks_of_it(
    machine: Machine, loop: Loop, purpose: Purpose, *, clean: bool, wipes: bool
) -> None:
    origin, ssd = loop(), loop()
    image = make_image(machine.work / "ssd", clean=clean, ssd=32_768)
    _cache_of(origin, ssd, image)
    with pytest.raises(UserError, match=rf"^{origin}: is the disk .*: {ssd} has .* of it, 40"):
        _claim(origin, purpose, origin if wipes else None)
    # Its cache is made anew.
    _claim(origin, ORIGIN)
    # Another disk is not concerned, nor is this one when it has all.
    _claim(loop(), purpose)
    _cache_of(origin, ssd, make_image(image.path, dirty=0, ssd=32_768))
    _claim(origin, purpose)


def test_a_disk_is_not_overwritten_while_an_ssd_has_newer_blocks_of_its_partition(
    machine: Machine, loop: Loop
) -> None:
    origin, ssd = loop(), loop()
    with _partition(origin) as part:
        _cache_of(part, ssd, make_image(machine.work / "ssd", clean=False, ssd=32_768))
        with pytest.raises(UserError, match=rf"^{origin}: {part} is the disk behind a cache"):
            _claim(origin, LOAD)


def test_an_image_that_a_loop_device_is_made_of_is_not_mended_by_any_name(
    machine: Machine, loop: Loop
) -> None:
    device = loop()
    file = Path((Path("/sys/block") / Path(device).name / "loop/backing_file").read_text().strip())
    link, other = machine.work / "link", file.with_name("hard")
    link.symlink_to(file)
    other.hardlink_to(file)
    for path in (file, link, other):
        with (
            pytest.raises(UserError, match=f"{Path(device).name} is made of it"),
            open_ssd(str(path), write=True),
        ):
            pass


def test_a_cache_without_dirty_blocks_is_a_signature(machine: Machine, loop: Loop) -> None:
    device = loop()
    image = make_image(machine.work / "ssd", ssd=32_768, dirty=0)
    Path(device).write_bytes(image.path.read_bytes())
    refused = _run(machine, device)
    assert refused.returncode == 2
    assert "bears a signature: isoblk setcache" in refused.stderr
    assert Path(device).read_bytes() == image.path.read_bytes()
    done = _run(machine, device, "--wipe", device)
    assert done.returncode == 0, done.stderr
    assert f"{device}: wiped: isoblk setcache" in done.stderr


@pytest.mark.parametrize("at", [0, 4096, 16 * MIB - 4096])
def test_an_ssd_of_a_cache_of_any_version_is_not_overwritten(
    machine: Machine, loop: Loop, at: int
) -> None:
    device = loop()
    with Path(device).open("r+b") as disk:
        disk.seek(at)
        disk.write(b"isoblk setcache\0" + bytes([99, 0, 0, 0]))
    for purpose in (LOAD, SSD):
        with pytest.raises(UserError, match="may have dirty blocks"):
            _claim(device, purpose, device)
    # The kernel reports to which origin the blocks belong.
    with claim(find_volume(device), SSD) as held:
        assert held.cached
    with pytest.raises(UserError, match="is the SSD of a cache"):
        _claim(device, ORIGIN)
    _claim(device, CHECK)


def test_a_wiped_ssd_counts_as_a_new_one(machine: Machine, loop: Loop) -> None:
    device = loop()
    image = make_image(machine.work / "ssd", ssd=32_768, dirty=0)
    Path(device).write_bytes(image.path.read_bytes())
    with Path(device).open("r+b") as disk:
        disk.seek(16 * MIB - 4096)
        disk.write(image.path.read_bytes()[:4096])
    disk_ = find_volume(device)
    with claim(disk_, CHECK) as held:
        held.wipe()
    with open_ssd(device, write=False) as ssd:
        assert not contents.is_marked(ssd)
    assert not any(Path(device).read_bytes()[-4096:])


def test_a_cache_that_was_cut_short_may_have_dirty_blocks(machine: Machine, loop: Loop) -> None:
    """Or is in use, on this machine or another: its memory knows of more than its records say."""
    device = loop()
    image = make_image(machine.work / "ssd", clean=False, ssd=32_768, dirty=0)
    Path(device).write_bytes(image.path.read_bytes())
    for purpose in (LOAD, SSD):
        with pytest.raises(
            UserError, match=r"may have dirty blocks .it is in use, or was cut short"
        ):
            _claim(device, purpose, device)


def test_any_used_ssd_becomes_one_that_the_kernel_formats(machine: Machine, loop: Loop) -> None:
    device = loop()
    for at in (0, 4096, 16 * MIB - 4096):
        Path(device).write_bytes(bytes(at) + b"x" * 512 + bytes(16 * MIB - 512 - at))
        with pytest.raises(UserError, match=f"was used: .*--wipe {device}$"):
            _claim(device, SSD)
        # A load overwrites it, and says so; an origin keeps its content.
        for purpose in (LOAD, ORIGIN):
            _claim(device, purpose)
        with pytest.raises(UserError, match=r"holds no cache .*create makes one, with --wipe"):
            _look(device)
        with claim(find_volume(device), SSD, device) as held:
            held.wipe()
            with held.bytes(os.O_RDONLY) as ssd:
                assert contents.is_blank(ssd)
        _claim(device, SSD)


def _look(device: str) -> None:
    with open_ssd(device, write=False) as ssd:
        examine(ssd)


def test_dirty_blocks_are_found_by_whatever_name_their_disk_has(
    machine: Machine, loop: Loop
) -> None:
    """A part of the disk as a loop device; another loop device of the file; the disk itself."""
    origin, ssd = loop(), loop()
    image = make_image(machine.work / "ssd", clean=False, ssd=32_768, origin=8192)
    with _loop_of(origin, "--offset", str(4 * MIB), "--sizelimit", str(4 * MIB)) as part:
        _cache_of(part, ssd, image)
        with pytest.raises(UserError, match="is the disk behind a cache"):
            _claim(part, LOAD)
    said = "is the disk behind a cache that is not in use"
    for purpose in (LOAD, SSD):
        with pytest.raises(UserError, match=said):
            _claim(origin, purpose)
    with _loop_of(origin, "--offset", str(8 * MIB)) as rest:
        _claim(rest, LOAD)
    with (
        _loop_of(origin, "--offset", str(7 * MIB)) as rest,
        pytest.raises(UserError, match=said),
    ):
        _claim(rest, LOAD)
    # Sectors 2048 to 10239, of which the last 2048 are the cache's.
    with _partition(origin) as beginning, pytest.raises(UserError, match=said):
        _claim(beginning, LOAD)


def test_a_copy_of_a_disk_and_its_ssd_is_not_the_disk(machine: Machine, loop: Loop) -> None:
    origin, ssd = loop(), loop()
    _cache_of(origin, ssd, make_image(machine.work / "ssd", clean=False, ssd=32_768))
    copy, again = loop(), loop()
    for source, to in ((origin, copy), (ssd, again)):
        Path(to).write_bytes(Path(source).read_bytes())
    assert origins.whose(_named(ssd), dmsetup) == origin
    assert _named(ssd) == _named(again)
    # It is unknown which of the two SSDs has the newer blocks.
    with pytest.raises(UserError, match=f"{again} has newer blocks of it"):
        refuse_newer_elsewhere(find_volume(origin), dmsetup, but=find_volume(ssd))
    refuse_newer_elsewhere(find_volume(copy), dmsetup)
    # The file by another name is the disk.
    file = (Path("/sys/block") / Path(origin).name / "loop/backing_file").read_text().strip()
    (hard := Path(file).with_name("hard")).hardlink_to(file)
    with _loop_of(str(hard)) as same:
        assert origins.word(find_volume(same).sys, dmsetup) == _named(ssd).removeprefix("id:")


def _named(device: str) -> str:
    with open_ssd(device, write=False) as ssd:
        return identity(ssd)


# -- paths that change --


@pytest.mark.parametrize("kind", ["link", "node"])
def test_a_path_that_is_swapped_at_any_step_leads_to_no_other_disk(
    machine: Machine, loop: Loop, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    meant, other = loop(), loop()
    path = machine.work / "disk"
    open_, run_tool, when = os.open, system.run_tool, [0]

    def point(to: str) -> None:
        """As rename(2) does it, at once."""
        new = machine.work / "new"
        if kind == "link":
            new.symlink_to(to)
        else:
            os.mknod(new, 0o60600, _number(to))
        new.rename(path)

    def step() -> None:
        when[0] -= 1
        if when[0] == 0:
            point(other)

    def opening(*words: Any, **more: Any) -> int:
        step()
        return open_(*words, **more)

    def running(*words: str, **more: Any) -> str:
        step()
        return run_tool(*words, **more)

    monkeypatch.setenv("ISOBLK_STATE", str(machine.state))
    monkeypatch.setattr(os, "open", opening)
    monkeypatch.setattr(system, "run_tool", running)
    wiped = refused = 0
    for number in range(1, 30):
        for device in (meant, other):
            run_tool("mkswap", device)
        before = Path(other).read_bytes()
        point(meant)
        when[0] = number
        try:
            with host.session(
                str(path), str(path), mounts=False, running=(), time_limit_s=1
            ) as ready:
                assert ready.machine.tier.place.disk == Path(meant).name
                ready.wipe()
            wiped += 1
        except UserError:
            refused += 1
        when[0] = 0
        assert Path(other).read_bytes() == before, f"swapped at step {number}"
    assert wiped and refused


def test_a_device_that_has_become_another_is_not_claimed(machine: Machine, loop: Loop) -> None:
    meant, other = loop(), loop()
    path = machine.work / "disk"
    path.symlink_to(meant)
    found = find_disk(str(path))
    for now in (other, "/dev/null", str(machine.work)):
        path.unlink()
        path.symlink_to(now)
        for purpose in (LOAD, ORIGIN, SSD, CHECK, WATCH):
            with pytest.raises(UserError, match="became another device"), claim(found, purpose):
                pass
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match="became another device"), claim(found, WATCH):
        pass
    path.unlink()
    with pytest.raises(UserError, match="no such device"), claim(found, WATCH):
        pass


def test_a_name_in_dev_that_is_another_disks_is_not_written(machine: Machine, loop: Loop) -> None:
    meant, other = loop(), loop()
    node = machine.work / "disk"
    os.mknod(node, 0o60600, _number(meant))
    study = machine.work / "study.toml"
    study.write_text(LOAD_OF_WRITES)
    # As in a container, where /dev may have any content.
    done = subprocess.run(
        [
            *("unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2"; shift 2; exec "$@"'),
            *("sh", other, meant, sys.executable, "-m", "isoblk", "run", str(study)),
            *("--machine", "host", "--device", str(node)),
        ],
        cwd=machine.work,
        env=os.environ | {"ISOBLK_STATE": str(machine.state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not any(Path(other).read_bytes())
    assert done.returncode == 2, done.stderr
    assert "is not the device" in done.stderr


def test_a_disk_with_an_odd_name_is_run_on_and_wiped(machine: Machine, loop: Loop) -> None:
    device = loop()
    system.run_tool("mkswap", device)
    path = machine.work / "-x my;disk$(touch a)`touch b`'\"ä\\x20\n%s{}[*]?"
    path.symlink_to(device)
    refused = _run(machine, str(path))
    assert refused.returncode == 2
    assert "bears a signature: swap" in refused.stderr
    assert refused.stderr.count("\n") == 1
    done = _run(machine, str(path), "--wipe", str(path))
    assert done.returncode == 0, done.stderr
    assert any(Path(device).read_bytes())
    assert not list(machine.work.glob("?"))


# -- users of a disk --


def test_a_mount_in_another_namespace_is_named(machine: Machine, loop: Loop) -> None:
    device = loop()
    system.run_tool("mkfs.ext4", "-q", device)
    place = machine.work / "in there"
    place.mkdir()
    child = subprocess.Popen(
        [
            *("unshare", "--mount", "sh", "-c", 'mount "$0" "$1" && echo && exec sleep 60'),
            *(device, str(place)),
        ],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.read(1)
        assert str(place).replace(" ", "\\040") not in Path("/proc/self/mountinfo").read_text()
        with pytest.raises(UserError, match=rf"is mounted on {place}, as process {child.pid} "):
            _claim(device, LOAD, device)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_a_partition_in_use_keeps_the_disk_and_others_do_not(machine: Machine, loop: Loop) -> None:
    device = loop()
    with _partition(device) as part:
        with _mounted(part, machine.work / "fs"):
            for path in (device, part):
                with pytest.raises(UserError, match=f"{part} is mounted on"):
                    _claim(path, LOAD, path)
        for taken, asked in ((part, device), (device, part)):
            held = os.open(taken, os.O_RDWR | os.O_EXCL)
            with pytest.raises(UserError, match="is open in process"):
                _claim(asked, SCRATCH)
            os.close(held)
            _claim(asked, SCRATCH)
        # A process that writes to the disk may write to the partition; a reader does no harm.
        script = "import sys, time; f = open(sys.argv[1], sys.argv[2]); print(flush=True); input()"
        for mode in ("rb", "r+b"):
            other = subprocess.Popen(
                [sys.executable, "-c", script, device, mode],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert other.stdin is not None and other.stdout is not None
            assert other.stdout.read(1)
            if mode == "rb":
                _claim(part, SCRATCH)
            else:
                with pytest.raises(UserError, match=rf"is open in process {other.pid}"):
                    _claim(part, SCRATCH)
            other.communicate(b"\n")


def test_swap_on_a_partition_keeps_the_disk(machine: Machine, loop: Loop) -> None:
    device = loop()
    with _partition(device) as part:
        system.run_tool("mkswap", part)
        try:
            system.run_tool("swapon", part)
        except Exception as error:
            pytest.skip(f"no swap here: {error}")
        try:
            for path in (device, part):
                with pytest.raises(UserError, match=f"{part} is swap"):
                    _claim(path, LOAD, path)
        finally:
            system.run_tool("swapoff", part)


def test_the_backing_of_a_loop_device_in_use_is_in_use(machine: Machine, loop: Loop) -> None:
    device = loop()
    node = machine.work / "node"
    os.mknod(node, 0o60600, _number(device))
    # A loop device does not hold its backing open; a mount of it holds only the loop device.
    for path in (device, str(node)):
        with _loop_of(path) as upper, _mounted(upper, machine.work / "fs"):
            if path == str(node):
                node.rename(machine.work / "elsewhere")
            with pytest.raises(UserError, match=f"is the backing of {Path(upper).name}"):
                _claim(device, LOAD, device)
            if path == str(node):
                (machine.work / "elsewhere").unlink()
                with pytest.raises(UserError, match=f"is the backing of {Path(upper).name}"):
                    _claim(device, LOAD, device)
    _claim(device, SCRATCH)


def test_a_loop_device_is_claimed_together_with_its_backing(machine: Machine, loop: Loop) -> None:
    device = loop()
    with _loop_of(device) as middle, _loop_of(middle) as upper:
        with claim(find_volume(upper), SCRATCH):
            for path in (device, middle):
                with pytest.raises(OSError, match="busy"):
                    os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
        with Path(device).open("rb"), pytest.raises(UserError, match="is open in process"):
            _claim(upper, SCRATCH)
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    with (
        _mounted(device, machine.work / "fs"),
        _loop_of(device) as upper,
        pytest.raises(UserError, match=f"{device} is mounted on"),
    ):
        _claim(upper, LOAD, upper)


def test_two_loop_devices_of_one_file_are_two_users(machine: Machine, loop: Loop) -> None:
    device = loop()
    file = (Path("/sys/block") / Path(device).name / "loop/backing_file").read_text().strip()
    with _loop_of(file, "--sizelimit", str(8 * MIB)) as other, _mounted(other, machine.work / "fs"):
        with pytest.raises(UserError, match=f"sectors with {Path(other).name}"):
            _claim(device, LOAD, device)
        with _loop_of(file, "--offset", str(8 * MIB)) as rest:
            with pytest.raises(UserError, match=f"sectors with {Path(device).name}"):
                _claim(rest, LOAD, rest)
            system.run_tool("losetup", "--detach", device)
            try:
                _claim(rest, LOAD, rest)
            finally:
                # For the fixture, which detaches it.
                system.run_tool("losetup", device, file)


def test_a_file_has_one_user_by_any_name(machine: Machine, loop: Loop) -> None:
    device = loop()
    file = Path((Path("/sys/block") / Path(device).name / "loop/backing_file").read_text().strip())
    hard = file.with_name("hard")
    hard.hardlink_to(file)
    with (
        _loop_of(str(hard)) as other,
        pytest.raises(UserError, match=f"sectors with {Path(other).name}"),
    ):
        _claim(device, SCRATCH)
    hard.unlink()
    place = machine.work / "bound"
    place.touch()
    system.run_tool("mount", "--bind", str(file), str(place))
    try:
        with (
            _loop_of(str(place)) as other,
            pytest.raises(UserError, match=f"sectors with {Path(other).name}"),
        ):
            _claim(device, SCRATCH)
    finally:
        system.run_tool("umount", str(place))
    _claim(device, SCRATCH)


def test_a_claim_ends_with_its_block(machine: Machine, loop: Loop) -> None:
    device = loop()
    before = _open_files()
    with pytest.raises(RuntimeError), ExitStack() as stack:
        held = stack.enter_context(claim(find_volume(device), SCRATCH))
        with pytest.raises(OSError, match="busy"):
            os.open(device, os.O_RDWR | os.O_EXCL)
        held.release()
        taken = os.open(device, os.O_RDWR | os.O_EXCL)
        for again in (held.hold, held.wipe):
            with pytest.raises(UserError, match="is open in process"):
                again()
        os.close(taken)
        held.hold()
        with pytest.raises(OSError, match="busy"):
            os.open(device, os.O_RDWR | os.O_EXCL)
        raise RuntimeError
    for purpose in (LOAD, SCRATCH, ORIGIN, SSD, CHECK, WATCH):
        _claim(device, purpose)
    assert _open_files() == before


def test_a_watch_claims_a_device_that_is_in_use(machine: Machine, loop: Loop) -> None:
    device = loop()
    with _mounted(device, machine.work / "fs"), claim(find_volume(device), WATCH) as held:
        held.compare(device)
        with pytest.raises(UserError, match="/dev/null is not the device"):
            held.compare("/dev/null")


def test_a_disk_of_several_that_btrfs_has_mounted_is_refused(machine: Machine, loop: Loop) -> None:
    if not shutil.which("mkfs.btrfs"):
        pytest.skip("no mkfs.btrfs")
    one, two = loop(), loop()
    place = machine.work / "fs"
    place.mkdir()
    system.run_tool("mkfs.btrfs", "-q", "--mixed", one, two)
    system.run_tool("mount", one, str(place))
    try:
        for device in (one, two):
            with pytest.raises(UserError, match=r"is a member of|is mounted on"):
                _claim(device, LOAD, device)
    finally:
        system.run_tool("umount", str(place))


def test_the_disk_is_not_another_programs_between_the_runs_of_a_study_with_files(
    machine: Machine, loop: Loop
) -> None:
    device = loop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISOBLK_STATE", str(machine.state))
        with host.session(device, None, mounts=True, running=(), time_limit_s=9) as ready:
            plan = machine.work / "plan.sh"
            plan.write_text("echo 'plan: exit status 0'")
            ready.machine.run(machine.work, (), seed=0, memory_mib=0)
            with pytest.raises(OSError, match="busy"):
                os.open(device, os.O_RDWR | os.O_EXCL)
            plan.write_text("echo 'plan: exit status 1'")
            with pytest.raises(RunError, match="a step of the plan failed"):
                ready.machine.run(machine.work, (), seed=0, memory_mib=0)
            # After a run that failed it is looked at when the next one begins.
            taken = os.open(device, os.O_RDWR | os.O_EXCL)
            plan.write_text("touch written; echo 'plan: exit status 0'")
            with pytest.raises(UserError, match="is open in process"):
                ready.machine.run(machine.work, (), seed=0, memory_mib=0)
            os.close(taken)
            with _partition(device), pytest.raises(UserError, match="has partitions"):
                ready.machine.run(machine.work, (), seed=0, memory_mib=0)
            assert not (machine.work / "written").exists()
    deadline = time.monotonic() + DEADLINE_S
    while list(machine.state.iterdir()):
        assert time.monotonic() < deadline
