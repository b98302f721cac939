# SPDX-License-Identifier: GPL-2.0-only
"""The commands isoblk kernel build, list, clean and modules: parse, call, print."""

import platform
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isoblk import kernel
from isoblk.cli.help import examples
from isoblk.cli.lab import require_lab
from isoblk.cli.progress import building
from isoblk.console import new_console
from isoblk.kernel.installed import build_installed, find_installed

app = typer.Typer(help="Build kernels for the lab, and modules for an installed kernel.")


@app.command(
    epilog=examples(
        "isoblk kernel build",
        "isoblk kernel build --newest",
        "isoblk kernel build --debug",
        "isoblk kernel build --stock",
    )
)
def build(
    version: Annotated[
        str | None,
        typer.Option(
            metavar="N.M",
            help="Version of the kernel; newest: the newest of the suite.",
            show_default=kernel.DEFAULT_VERSION,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|TARBALL|DEB|URL",
            help="Source to build in place of Debian's. A URL ends in #sha256=SUM.",
        ),
    ] = None,
    suite: Annotated[
        str | None, typer.Option(metavar="SUITE", help="Debian suite of the source package.")
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="Short for --version newest.")] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Build with sanitizers and lock checking; several times slower."
        ),
    ] = False,
    arch: Annotated[
        kernel.Arch,
        typer.Option(
            help="um: for machine uml; um-smp: for smp; x86_64: for qemu and icount;"
            " um-lean: for tests."
        ),
    ] = "um",
    stock: Annotated[
        bool,
        typer.Option("--stock", help="Fetch Debian's own kernel, for machines qemu and icount."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "-j",
            "--jobs",
            metavar="N",
            min=1,
            help="Number of files to compile in parallel.",
            show_default="number of CPUs",
        ),
    ] = None,
) -> None:
    """Build a kernel and its modules, unless the cache holds them."""
    require_lab()
    if newest and version is not None:
        raise typer.BadParameter("--newest and --version exclude each other")
    if stock and (source is not None or debug or arch != "um"):
        raise typer.BadParameter("--stock excludes --source, --debug and --arch")
    request = kernel.Request(
        version="newest" if newest else version,
        source=None if source is None else kernel.source_named(source),
        suite=suite,
        debug=debug,
        jobs=jobs,
        arch=arch,
    )
    with building() as bar:
        if stock:
            ready = kernel.stock.build(request.version, suite, bar)
        else:
            ready = kernel.build(request, bar)
        modules = kernel.build_modules(ready, bar)
        bar.finish()
    console = new_console(soft_wrap=True)
    console.print(f"Linux {ready.version} is ready: {ready.linux}")
    console.print(f"modules: {modules}")


@app.command(epilog=examples("isoblk kernel modules", "isoblk kernel modules --for 6.12.41-amd64"))
def modules(
    release: Annotated[
        str | None,
        typer.Option("--for", metavar="RELEASE", help="Kernel release, as uname -r prints it."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(metavar="DIR|TARBALL|DEB", help="Source of the kernel, in place of Debian's."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Directory for the modules.",
            show_default="modules-RELEASE",
        ),
    ] = None,
) -> None:
    """Build the modules for an installed kernel, and print how to load and install them."""
    found = find_installed(release or platform.release())
    directory = output or Path(f"modules-{found.release}")
    with building() as bar:
        built = build_installed(found, directory, source, bar)
        bar.finish()
    console = new_console(soft_wrap=True)
    for name in built.names:
        console.print(f"{built.directory / name}")
    there = shlex.quote(str(built.directory))
    console.print(
        f"load:    sudo insmod {there}/isoblk_share.ko && sudo insmod {there}/isoblk-iosched.ko\n"
        f"install: sudo install -D -m 644 -t /lib/modules/{found.release}/updates/isoblk"
        f" {there}/*.ko && sudo depmod {found.release}\n"
        "choose:  echo isoblk | sudo tee /sys/block/DISK/queue/scheduler",
    )


@app.command("list", epilog=examples("isoblk kernel list"))
def list_() -> None:
    """List the built kernels, the newest build first."""
    require_lab()
    console = new_console()
    ready = kernel.list_kernels()
    if not ready:
        console.print("no kernel has been built; run: isoblk kernel build")
        return
    rows = Table(box=None, pad_edge=False)
    for heading in ("key", "source", "compiler"):
        rows.add_column(heading, overflow="fold")
    for item in ready:
        # Of "gcc (Debian 12.2.0-14) 12.2.0; GNU ld ..." the name and the version.
        compiler = item.compiler.partition(";")[0].split()
        rows.add_row(item.key, item.source, f"{compiler[0]} {compiler[-1]}")
    console.print(rows)


@app.command(
    epilog=examples(
        "isoblk kernel clean",
        "isoblk kernel clean --all",
    )
)
def clean(
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY]...", help="Keys of kernels, or their beginnings.", show_default="all"
        ),
    ] = None,
    sources: Annotated[
        bool, typer.Option("--all", help="Also remove sources that no remaining kernel needs.")
    ] = False,
) -> None:
    """Remove kernels and their modules from the cache, except kernels in use."""
    require_lab()
    done = kernel.clean(keys or (), sources=sources)
    console = new_console(soft_wrap=True)
    for name in done.removed:
        console.print(f"removed {name}")
    for name in done.busy:
        console.print(f"kept {name}: it is in use")
    console.print(f"{done.freed / 1e6:,.0f} MB freed")
