# SPDX-License-Identifier: GPL-2.0-only
"""The files of ycsb: YCSB and RocksDB from Maven Central, and the binding's class.

They are made once, in the cache. Maven downloads, so its settings (mirrors, proxies, passwords)
apply; the downloads are compared with the SHA-256 sums in the repository.

    ycsb/HASH/             HASH: of java/ in the repository
        *.jar              as downloaded, but rocksdbjni's without its libraries
        librocksdbjni-linux64.so
        isoblk.jar         compiled here
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from isoblk.errors import RunError, UserError
from isoblk.kernel import store, tools
from isoblk.paths import cache_dir, java_dir

PACKAGES = {"java": "default-jdk-headless", "javac": "default-jdk-headless", "mvn": "maven"}
"""Programs that make the files, and the Debian packages that contain them."""

_SOURCE = "isoblk/RocksDb.java"
_POM = "pom.xml"
_SUMS = "SHA256SUMS"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_OURS = "isoblk.jar"
_LIBRARY = "librocksdbjni-linux64.so"
_LIBRARIES = (".so", ".jnilib", ".dll")
_TIME_LIMIT_S = 600


def files() -> Mapping[str, Path]:
    """Return the files by names(), made if they are not ready.

    Raises:
        UserError: a program is missing.
        RunError: Maven could not download, or a download has another checksum.
    """
    home = _home()
    with store.lock("ycsb", wait=lambda: None):
        if not made():
            _make(home)
    return {name: home / (_OURS if name == _our_name() else name) for name in names()}


def names() -> tuple[str, ...]:
    """Return the names of the files. They include hashes, so that they identify a run."""
    return (_our_name(), _LIBRARY, *_sums())


def _our_name() -> str:
    return f"isoblk-{_home().name}.jar"


def _home() -> Path:
    whole = hashlib.sha256()
    for name in (_POM, _SUMS, _SOURCE):
        whole.update((java_dir() / name).read_bytes())
    return cache_dir() / "ycsb" / whole.hexdigest()[:12]


def _sums() -> dict[str, str]:
    """Return the SHA-256 of the jars that Maven downloads, by file name."""
    text = (java_dir() / _SUMS).read_text()
    return {name: digest for digest, name in map(str.split, text.splitlines())}


def made() -> bool:
    """Return whether the files are in the cache."""
    return _home().is_dir()


def missing() -> dict[str, str]:
    """Return the programs of PACKAGES that are not installed, with their packages. Programs that
    make the files count only while these are not made."""
    return tools.missing({"java": PACKAGES["java"]} if made() else PACKAGES)


def _make(home: Path) -> None:
    if absent := missing():
        raise UserError(
            "ycsb: not found: " + ", ".join(absent),
            next=tools.install_command(list(absent.values())),
        )
    home.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".make.", dir=home.parent) as name:
        fetched, made, classes = (Path(name, part) for part in ("fetched", "made", "classes"))
        made.mkdir()
        _fetch(fetched)
        _check(fetched)
        _compile(fetched, classes)
        for jar in sorted(fetched.iterdir()):
            _copy(jar, made)
        with ZipFile(made / _OURS, "w") as archive:
            for path in sorted(classes.rglob("*.class")):
                archive.writestr(ZipInfo(str(path.relative_to(classes))), path.read_bytes())
        made.rename(home)


def _fetch(directory: Path) -> None:
    try:
        _run(
            *("mvn", "--quiet", "--batch-mode", f"--file={java_dir() / _POM}"),
            *(_COPY, f"-DoutputDirectory={directory}"),
        )
    except subprocess.SubprocessError as error:
        raise RunError(
            f"Maven cannot fetch YCSB and RocksDB: {_complaint(error)}",
            next="check that it reaches Maven Central or a mirror (its settings.xml)",
        ) from None


def _check(directory: Path) -> None:
    """Compare the jars with the sums; none may be missing or superfluous."""
    wanted = _sums()
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()
    }
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise RunError(
                f"Maven downloaded {name} with SHA-256 {found.get(name, '(none)')},"
                f" not {wanted.get(name, '(none)')}",
                where=str(java_dir() / _SUMS),
            )


def _compile(jars: Path, classes: Path) -> None:
    try:
        _run(
            *("javac", "-Xlint:all", "-Werror", "-cp", f"{jars}/*", "-d", str(classes)),
            str(java_dir() / _SOURCE),
        )
    except subprocess.SubprocessError as error:
        raise RunError(f"javac failed: {_complaint(error)}", where=_SOURCE) from None


def _run(*command: str) -> None:
    subprocess.run(
        command,
        check=True,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_TIME_LIMIT_S,
        env={**os.environ, "LC_ALL": "C"},
    )


def _complaint(error: subprocess.SubprocessError) -> str:
    """Return the first line with an error message."""
    if not isinstance(error, subprocess.CalledProcessError):
        return f"no end after {_TIME_LIMIT_S} s"
    lines = [line.strip() for line in str(error.output).splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line.lower()]
    return (wrong or lines or [f"exit status {error.returncode}"])[0]


def _copy(jar: Path, directory: Path) -> None:
    """Copy a jar; from one with libraries for several machines, extract only ours.

    Otherwise every Java machine would unpack it into the guest's memory.
    """
    with ZipFile(jar) as source:
        if _LIBRARY not in source.namelist():
            shutil.copy(jar, directory)
            return
        (directory / _LIBRARY).write_bytes(source.read(_LIBRARY))
        with ZipFile(directory / jar.name, "w", ZIP_DEFLATED) as target:
            for item in source.infolist():
                if not item.filename.endswith(_LIBRARIES):
                    target.writestr(item, source.read(item))
