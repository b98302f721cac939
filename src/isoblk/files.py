# SPDX-License-Identifier: GPL-2.0-only
"""Read the user's files as text, and write files whole or not at all, without replacing others.

isoblk's own files (its cache, a result directory's contents) are replaced by write_atomically().
Outputs that the user names are written by new_file().
"""

import codecs
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

from isoblk.errors import IsoblkError, UserError

LOCK = ".lock"
"""Lock file of a directory, for exclusive()."""
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Larger than any document; a device or a pipe may have no end.
_LARGEST_TEXT = 16 << 20
# Errors of a file system without hard links, or without permission for them.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


def read_text(path: Path, what: str, *, next: str = "") -> str:
    """Return the text of a user's file, without a byte order mark.

    Args:
        path: the file.
        what: the file's kind, for errors, as in "the study".
        next: the next step if it cannot be read or is not text.

    Raises:
        UserError: it cannot be read, has no end, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_TEXT + 1)
    except OSError as error:
        raise UserError(
            f"cannot read {what}: {error.strerror}", where=str(path), next=next
        ) from None
    if len(data) > _LARGEST_TEXT:
        raise UserError(f"more than {_LARGEST_TEXT >> 20} MiB", where=str(path), next=next)
    if data.startswith(_UTF_16):
        raise UserError("UTF-16 text", where=str(path), next="save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError("not UTF-8 text", where=str(path), next=next) from None


def temporary_name(path: Path) -> Path:
    """Return the path at which this thread writes a file until it is complete."""
    return path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}")


def write_atomically(path: Path, data: bytes, *, executable: bool = False) -> None:
    """Replace `path` by a file with `data`, or leave it unchanged; safe for concurrent writers. For
    isoblk's own files."""
    temporary = temporary_name(path)
    try:
        # An existing file is another user's link, or left by a process with the same number.
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            file.write(data)
        if executable:
            temporary.chmod(0o755)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def exclusive(
    directory: Path, prepare: Callable[[], None], *, cannot: str, holder: str
) -> Iterator[None]:
    """Lock a directory of isoblk's own, which prepare() makes.

    Args:
        directory: the directory.
        prepare: makes it.
        cannot: the failed operation, for errors.
        holder: the possible holder of the lock, for errors.

    Raises:
        UserError: it cannot be written, or is in use.
    """
    try:
        prepare()
        # Not through a link, which may lead to any file.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.fdopen(os.open(directory / LOCK, flags, 0o644))
    except OSError as error:
        raise UserError(
            f"{cannot}: {error.strerror}", where=str(directory), next="choose -o DIR"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"in use by {holder}", where=str(directory), next="wait, or choose -o DIR"
            ) from None
        yield


def check_new(paths: Iterable[Path], *, inputs: Iterable[Path] = (), force: bool = False) -> None:
    """Raise the error that new_files() would raise at its end."""
    sources = list(inputs)
    for path in paths:
        _target(path, sources, force=force)


@contextmanager
def new_file(path: Path, *, inputs: Iterable[Path] = (), force: bool = False) -> Iterator[Path]:
    """Write one file as by new_files()."""
    with new_files([path], inputs=inputs, force=force) as (temporary,):
        yield temporary


@contextmanager
def new_files(
    paths: Iterable[Path], *, inputs: Iterable[Path] = (), force: bool = False
) -> Iterator[list[Path]]:
    """Write files that the user names: all of them when `with` ends, none if an exception ends it.

    Yields a path to write to for each, in a directory of their own next to the first. A file that
    is not written there is not made. Each has its final name, so that names derived from it are
    correct. A file that appears at a name during the write is not replaced.

    Args:
        paths: in one directory, with different names.
        inputs: sources of the outputs, which are never replaced, by any name.
        force: replace existing files; those of `paths` that are not written are removed.

    Raises:
        UserError: one of `paths` exists (unless `force`), is not a file, or is an input; it cannot
            be written. An error in the temporary directory names the output's instead.
    """
    given = list(paths)
    sources = list(inputs)
    targets = [_target(path, sources, force=force) for path in given]
    parent = targets[0].parent
    with _cannot_write(parent if not parent.is_dir() else given[0]):
        directory = Path(tempfile.mkdtemp(prefix=".isoblk-", dir=parent))
    temporaries = [directory / path.name for path in given]
    try:
        with _named_as(directory, parent):
            yield temporaries
        check_new(given, inputs=sources, force=force)
        _take_names(temporaries, targets, force=force)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _target(path: Path, inputs: list[Path], *, force: bool) -> Path:
    """Return the path to which `path` is written. Raises UserError: it may not be written."""
    if not path.name:
        raise UserError("is not a file name", where=str(path))
    if not os.path.lexists(path):
        return path
    if any(_same(path, source) for source in inputs):
        raise UserError("is the input itself", where=str(path), next="choose another name")
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        what = "a directory" if target.is_dir() else "no ordinary file"
        raise UserError(f"is {what}", where=str(path), next="name a file")
    if not force:
        raise UserError("exists", where=str(path), next="choose another name, or add --force")
    return target


def _same(one: Path, other: Path) -> bool:
    """Return whether both names lead to one file: a link, another path, another case."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _take_names(temporaries: list[Path], targets: list[Path], *, force: bool) -> None:
    taken: list[Path] = []
    try:
        for temporary, target in zip(temporaries, targets, strict=True):
            with _cannot_write(target):
                if not temporary.exists():
                    if force:
                        target.unlink(missing_ok=True)
                elif force:
                    _replace(temporary, target)
                else:
                    _take_name(temporary, target)
                    taken.append(target)
    except BaseException:
        for target in taken:
            target.unlink(missing_ok=True)
        raise


def _replace(temporary: Path, target: Path) -> None:
    """Rename, across file systems if necessary. Raises OSError."""
    try:
        temporary.replace(target)
    except OSError as error:
        # The first of the files is a link to another file system, and this file is not on it.
        if error.errno != errno.EXDEV:
            raise
        write_atomically(target, temporary.read_bytes())


def _take_name(temporary: Path, target: Path) -> None:
    """Give a file a name that does not exist. Raises FileExistsError, OSError."""
    try:
        target.hardlink_to(temporary)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # The name is taken first, so that only our own empty file is replaced.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        temporary.replace(target)


@contextmanager
def _cannot_write(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise UserError(
            "exists", where=str(path), next="choose another name, or add --force"
        ) from None
    except OSError as error:
        raise UserError(f"cannot write: {error.strerror}", where=str(path)) from None


@contextmanager
def _named_as(directory: Path, parent: Path) -> Iterator[None]:
    """Rename files in errors: those in `directory` to the same name in `parent`."""
    try:
        yield
    except IsoblkError as error:
        inside = f"{directory}{os.sep}"
        if inside not in error.where:
            raise
        error.where = error.where.replace(inside, "" if parent == Path() else f"{parent}{os.sep}")
        raise
    except OSError as error:
        if error.filename is None or not Path(error.filename).is_relative_to(directory):
            raise
        where = str(parent / Path(error.filename).relative_to(directory))
        raise UserError(f"cannot write: {error.strerror}", where=where) from None
