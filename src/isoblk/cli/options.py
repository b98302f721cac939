# SPDX-License-Identifier: GPL-2.0-only
"""Options that several commands share."""

from typing import Annotated

import typer

Jobs = Annotated[
    int, typer.Option("-j", "--jobs", metavar="N", min=1, help="Number of runs in parallel.")
]
TestedKernel = Annotated[
    str, typer.Option(metavar="VERSION", help="Version of the kernel under test.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Use the debug kernel (KASAN, lockdep).")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
