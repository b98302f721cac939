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

app = typer.Typer(help="Kernels for the lab, and modules for this machine's.")


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
            help="Version, or 'newest' of the suite.",
            show_default=kernel.DEFAULT_VERSION,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|TARBALL|DEB|URL",
            help="Build this source instead of fetching Debian's; a URL ends in #sha256=SUM.",
        ),
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="Debian suite to take the source package from.")
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="Short for --version newest.")] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="With sanitizers and lock checking; several times slower."),
    ] = False,
    arch: Annotated[
        kernel.Arch,
        typer.Option(help="um: for the uml machine; um-smp: smp; x86_64: qemu; um-lean: tests."),
    ] = "um",
    stock: Annotated[
        bool,
        typer.Option(
            "--stock", help="Debian's own kernel for the qemu machine: fetched, not built."
        ),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Compile so many files at once.")
    ] = None,
) -> None:
    """Build a kernel and the modules for it, unless the cache has them."""
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
        str | None, typer.Option("--for", metavar="RELEASE", help="Kernel, as uname -r has it.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|TARBALL|DEB", help="The kernel's source, instead of fetching Debian's."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Directory for them.",
            show_default="modules-RELEASE",
        ),
    ] = None,
) -> None:
    """Build schedulers and cache for an installed kernel, to load or install them there."""
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
    """List the kernels that are ready, the newest build first."""
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
        # The compiler's own words, "gcc (who packaged it) 12.2.0; GNU ld ...", without the middle.
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
        typer.Argument(metavar="[KEY]...", help="Kernels (beginnings of keys); all if none."),
    ] = None,
    sources: Annotated[
        bool, typer.Option("--all", help="Also the sources that no remaining kernel needs.")
    ] = False,
) -> None:
    """Remove kernels and their modules from the cache, never one in use."""
    require_lab()
    done = kernel.clean(keys or (), sources=sources)
    console = new_console(soft_wrap=True)
    for name in done.removed:
        console.print(f"removed {name}")
    for name in done.busy:
        console.print(f"kept {name}: it is in use")
    console.print(f"{done.freed / 1e6:,.0f} MB freed")
