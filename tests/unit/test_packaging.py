# SPDX-License-Identifier: GPL-2.0-only
"""The contents of the packages: DKMS builds the same as kbuild, and only with headers that fit."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from isoblk.weights.cost import DRIVES
from tests.unit.scripts import ROOT, load_packaging

PACKAGING = ROOT / "packaging"
NEEDED = ("CONFIG_BLK_CGROUP", "CONFIG_BLK_ICQ", "CONFIG_BLK_DEV_DM")


@pytest.fixture
def stage() -> ModuleType:
    return load_packaging("stage")


def test_dkms_names_the_modules_that_kbuild_builds() -> None:
    built = {
        name
        for part in ("sched", "cache")
        for line in re.findall(
            r"^obj-.*?\+= (.*)", (ROOT / "kernel" / part / "Kbuild").read_text(), re.MULTILINE
        )
        for name in re.findall(r"([\w-]+)\.o", line)
    }
    text = (PACKAGING / "dkms/dkms.conf").read_text()
    named = re.findall(r'^BUILT_MODULE_NAME\[(\d)\]="(.*)"', text, re.MULTILINE)
    assert {name for _, name in named} == built
    for number, _ in named:
        for field in ("BUILT_MODULE_LOCATION", "DEST_MODULE_LOCATION"):
            assert f"{field}[{number}]=" in text


def test_the_options_that_dkms_asks_for_are_those_that_are_named() -> None:
    asked = re.search(r'BUILD_EXCLUSIVE_CONFIG="(.*)"', (PACKAGING / "dkms/dkms.conf").read_text())
    assert asked
    assert tuple(asked[1].split()) == NEEDED
    assert " ".join(NEEDED) in (PACKAGING / "dkms/headers-for").read_text()


def kernel(directory: Path, release: str, version: str, config: str | None = None) -> Path:
    """The headers of a kernel, as far as they say which one it is."""
    major, minor, patch = version.split(".")
    (directory / "include/generated/uapi/linux").mkdir(parents=True)
    (directory / "include/generated/uapi/linux/version.h").write_text(
        f"#define LINUX_VERSION_CODE 1\n#define LINUX_VERSION_MAJOR {major}\n"
        f"#define LINUX_VERSION_PATCHLEVEL {minor}\n#define LINUX_VERSION_SUBLEVEL {patch}\n"
    )
    (directory / "include/generated/utsrelease.h").write_text(f'#define UTS_RELEASE "{release}"\n')
    every = "".join(f"{option}=y\n" for option in NEEDED)
    (directory / ".config").write_text(every if config is None else config)
    return directory


def headers_for(tmp_path: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """The output of the packaged script, with these headers next to it."""
    place = tmp_path / "source"
    for name, until in {
        "6.12.95": "107",
        "6.12.117": "",
        "7.0.0-14": "34",
        "7.0.0-44": "",
        "7.2.6": "",
    }.items():
        (place / "headers" / name).mkdir(parents=True)
        if until:
            (place / "headers" / name / "UNTIL").write_text(f"{until}\n")
    script = place / "headers-for"
    script.write_bytes((PACKAGING / "dkms/headers-for").read_bytes())
    script.chmod(0o755)
    return subprocess.run(
        ["sh", script, directory], text=True, capture_output=True, check=False, timeout=30
    )


@pytest.mark.parametrize(
    ("release", "version", "fits"),
    [
        ("6.12.95+deb12-amd64", "6.12.95", "6.12.95"),
        ("6.12.107+deb13-amd64", "6.12.107", "6.12.95"),
        ("6.12.117+deb13-amd64", "6.12.117", "6.12.117"),
        ("6.12.300", "6.12.300", "6.12.117"),
        ("7.2.13+deb14-amd64", "7.2.13", "7.2.6"),
        ("7.0.0-34-generic", "7.0.14", "7.0.0-14"),
        # The same P, and other headers.
        ("7.0.0-44-generic", "7.0.14", "7.0.0-44"),
        ("7.0.0-44-lowlatency", "7.0.14", "7.0.0-44"),
    ],
)
def test_headers_are_chosen_by_version(
    release: str, version: str, fits: str, tmp_path: Path
) -> None:
    done = headers_for(tmp_path, kernel(tmp_path / "kernel", release, version))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(tmp_path / "source/headers" / fits)


@pytest.mark.parametrize(
    ("release", "version", "cause"),
    [
        ("6.1.0-56-amd64", "6.1.192", "too old: the modules need 6.12.95 or newer"),
        ("6.8.0-151-generic", "6.8.12", "too old: the modules need 6.12.95 or newer"),
        ("6.12.90+deb12-amd64", "6.12.90", "too old: the modules need 6.12.95 or newer"),
        ("6.12.110", "6.12.110", "its private headers are not known"),
        ("7.0.0-40-generic", "7.0.14", "its private headers are not known"),
        # Ubuntu's headers have not been compared with these.
        ("7.2.0-9-generic", "7.2.13", "the private headers that are here fit 6.12.95 to 107, "),
        ("7.0.14", "7.0.14", "the private headers that are here fit 6.12.95 to 107, 6.12.117 on, "),
    ],
)
def test_a_kernel_that_no_headers_fit_is_refused_in_a_line(
    release: str, version: str, cause: str, tmp_path: Path
) -> None:
    done = headers_for(tmp_path, kernel(tmp_path / "kernel", release, version))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"isoblk: no modules for Linux {release}: {cause}")
    assert done.stderr.count("\n") == 1


# As DKMS reads a configuration. Whether to install by itself 3.0 asks without naming a kernel: then
# it is the caller's.
READ = """
kernelver=$1
source_it() { ( . "$conf" > /dev/null; echo "$release:$AUTOINSTALL:$BUILD_EXCLUSIVE_KERNEL" ); }
read_conf() { local kernelver=$1 kernel_source_dir=$2; source_it; }
conf=$2
read_conf "$3" "$4"
"""


@pytest.mark.parametrize(
    ("release", "version", "named", "said"),
    [
        ("6.12.117", "6.12.117", True, "6.12.117:yes:^6"),
        ("6.1.0-56-amd64", "6.1.192", True, "6.1.0-56-amd64::^$"),
        # Nothing of it is in /lib/modules here.
        ("6.1.0-56-nowhere", "6.1.192", False, "6.1.0-56-nowhere:yes:^6"),
    ],
)
def test_dkms_does_not_autoinstall_modules_that_fit_no_headers(
    tmp_path: Path, release: str, version: str, named: bool, said: str
) -> None:
    headers = kernel(tmp_path / "kernel", release, version)
    headers_for(tmp_path, headers)
    conf = tmp_path / "source/dkms.conf"
    conf.write_text((PACKAGING / "dkms/dkms.conf").read_text().replace("#SERIES#", "^6"))
    given = [release, str(headers)] if named else ["", str(tmp_path)]
    done = subprocess.run(
        ["bash", "-c", READ, "dkms", release, conf, *given],
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{said}\n", "")


def test_a_kernel_without_an_option_that_modules_need_is_refused(tmp_path: Path) -> None:
    without = "CONFIG_BLK_CGROUP=y\nCONFIG_BLK_DEV_DM=m\n# CONFIG_BLK_ICQ is not set\n"
    done = headers_for(tmp_path, kernel(tmp_path / "kernel", "7.2.6", "7.2.6", without))
    assert done.returncode == 1
    assert done.stderr == (
        "isoblk: no modules for Linux 7.2.6: it was built without CONFIG_BLK_ICQ;"
        " choose a kernel that has it\n"
    )


def test_variants_of_a_series_are_in_order_and_only_the_last_is_open() -> None:
    headers = load_packaging("headers")
    for series, variants in headers.SERIES.items():
        points = []
        for one in variants:
            assert one.since.startswith(f"{series}.")
            points += [int(re.findall(r"\d+", one.since)[-1])]
            points += [] if one.until is None else [one.until]
        assert points == sorted(points), series
        assert [one.until is None for one in variants] == [False] * (len(variants) - 1) + [True]


def test_headers_are_packaged_with_the_headers_they_include(tmp_path: Path) -> None:
    headers = load_packaging("headers")
    for name in (*headers.WANTED, "blk-stat.h", "other.h", "not-wanted.h"):
        (tmp_path / name).write_text("#include <linux/fs.h>\n")
    (tmp_path / "blk-mq.h").write_text('#include "blk-stat.h"\n# include "elsewhere.h"\n')
    (tmp_path / "blk-stat.h").write_text('#include "other.h"\n#include "blk-mq.h"\n')
    found = {path.name for path in headers.closure(tmp_path)}
    assert found == {*headers.WANTED, "blk-stat.h", "other.h"}


def test_the_packaged_commands_import_only_packaged_python(stage: ModuleType) -> None:
    files = {str(path.relative_to(ROOT / "src")) for path in stage.python_files(stage.ENTRIES)}
    assert {"isoblk/cli/weights.py", "isoblk/weights/follow.py", "isoblk/paths.py"} <= files
    assert not {file for file in files if file.startswith(("isoblk/report/", "isoblk/trace/"))}
    assert "isoblk/cli/run.py" not in files


def test_data_that_the_packaged_code_reads_is_packaged(stage: ModuleType, tmp_path: Path) -> None:
    stage.lay_out_python(tmp_path)
    table = DRIVES.relative_to(ROOT)
    assert (tmp_path / stage.PRIVATE / table).read_bytes() == DRIVES.read_bytes()
    copyright = (PACKAGING / "debian/copyright").read_text()
    assert f"Files: stage/isoblk/{stage.PRIVATE}/{table}\n" in copyright


def test_the_commands_of_the_lab_say_that_it_is_not_there(
    stage: ModuleType, tmp_path: Path
) -> None:
    stage.lay_out_python(tmp_path)
    # As installed, but with this environment's Python packages.
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1));from isoblk.__main__ import main; main()"
    )

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, tmp_path / stage.PRIVATE / "src", *words],
            text=True,
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            timeout=60,
        )

    told = call("--help").stdout
    assert all(f"  {name} " in told for name in ("cache", "disk", "kernel", "weights"))
    assert not any(word in told for word in ("doctor", "report", "study"))
    for words in (["run", "x.toml"], ["doctor"], ["compare", "a", "b"], ["kernel", "build"]):
        done = call(*words)
        assert done.stderr == (
            "isoblk: this package does not contain the lab; get isoblk's sources and run there:"
            " make wheel\n"
        ), words
        assert done.returncode == 2
