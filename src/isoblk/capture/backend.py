# SPDX-License-Identifier: GPL-2.0-only
"""Select a capture method that this kernel has."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

from isoblk.capture.blktrace import blktrace_source
from isoblk.capture.target import Target
from isoblk.capture.tracepoint import Source, UnavailableError, bpf_source
from isoblk.errors import UserError

Backend = Literal["auto", "bpf", "blktrace"]


@contextmanager
def open_source(target: Target, buffer: int, backend: Backend) -> Iterator[Source]:
    """Capture by BPF, or by the block tracer if it is requested or the kernel has no BPF.

    Raises:
        UserError: the kernel has neither, a right is missing, or the device is being traced.
    """
    with ExitStack() as stack:
        yield _open(stack, target, buffer, backend)


def _open(stack: ExitStack, target: Target, buffer: int, backend: Backend) -> Source:
    why = ""
    if backend != "blktrace":
        try:
            return stack.enter_context(bpf_source(target, buffer))
        except UnavailableError as error:
            if backend == "bpf":
                raise UserError(str(error), next="try: --backend blktrace") from None
            why = str(error)
    try:
        return stack.enter_context(blktrace_source(target, buffer))
    except UserError as error:
        if not why:
            raise
        raise UserError(
            f"{error.cause}; nor can BPF be used: {why}", where=error.where, next=error.next
        ) from None
