# SPDX-License-Identifier: GPL-2.0-only
"""Files of the user: read as text, and written whole or not at all, over nothing that is there.

What isoblk itself keeps (its cache, a result directory's contents) is written again by
write_atomically(). What a user names as an output goes through new_file().
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
"""Of a directory that exclusive() keeps others out of."""
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What people write is shorter; a device or a pipe may have no end.
_LARGEST_TEXT = 16 << 20
# A file system that has no hard links, or keeps them from us.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


def read_text(path: Path, what: str, *, next: str = "") -> str:
    """The text of a user's file; a byte order mark at its beginning is none of it.

    Args:
        what: the file's kind, for errors, as in "the study".
        next: what to do, if it cannot be read or is no text.

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
    """Where this thread writes a file until it is whole."""
    return path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}")


def write_atomically(path: Path, data: bytes, *, executable: bool = False) -> None:
    """Make `path` hold `data`, or leave it as it was, whoever else does so at the same time. For
    isoblk's own files."""
    temporary = temporary_name(path)
    try:
        # What is there is a link of somebody else's, or left by a process of the same number.
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
    """Keep others out of a directory of isoblk's own, which prepare() makes.

    Args:
        cannot: what does not succeed if that or the lock fails, for errors.
        holder: who else may be there, for errors.

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
    """Refuse at once what new_files() would refuse in the end. Raises as it."""
    sources = list(inputs)
    for path in paths:
        _target(path, sources, force=force)


@contextmanager
def new_file(path: Path, *, inputs: Iterable[Path] = (), force: bool = False) -> Iterator[Path]:
    """new_files() of one file."""
    with new_files([path], inputs=inputs, force=force) as (temporary,):
        yield temporary


@contextmanager
def new_files(
    paths: Iterable[Path], *, inputs: Iterable[Path] = (), force: bool = False
) -> Iterator[list[Path]]:
    """Files that a user wants written: all of them when `with` ends, none if an exception ends it.

    Gives a path to write to for each, in a directory of their own beside the first; a file that is
    not written there is not made. Each has its own name, so that what is derived from it is right.
    A name that has come to exist meanwhile is not taken either.

    Args:
        paths: in one directory, and of different names.
        inputs: what the outputs are made of. None of them is ever replaced, by whatever name.
        force: replace files that are there; those of `paths` that are not written then go.

    Raises:
        UserError: one of `paths` is there (unless `force`), is no file, or is an input; it cannot
            be written. An error that names the temporary directory names the output's instead.
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
    """Where `path` is written. Raises UserError: it may not be."""
    if not path.name:
        raise UserError("is no name for a file", where=str(path))
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
    """Whether both names lead to one file: a link, another path, another case."""
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
    """Raises OSError."""
    try:
        temporary.replace(target)
    except OSError as error:
        # The first of the files is a link that leads to another file system, and this is none.
        if error.errno != errno.EXDEV:
            raise
        write_atomically(target, temporary.read_bytes())


def _take_name(temporary: Path, target: Path) -> None:
    """Give a file a name that nobody has. Raises FileExistsError, OSError."""
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
    """Errors about what lies in `directory` are about the file of that name in `parent`."""
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
