# SPDX-License-Identifier: GPL-2.0-only
"""The kernel commands pass on their arguments, and print the result."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from isoblk import kernel
from isoblk.cli.kernel import app
from isoblk.kernel import Kernel, Progress, Request

MADE = Kernel("6.12.117-abc", "6.12.117", "linux-source-6.12_1", "gcc 12; ld 2", False, Path("/k"))


def test_build_passes_every_option_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def build(request: Request, progress: Progress) -> Kernel:
        asked.append(request)
        progress.stage("compiling [x]", 2)
        for _ in range(5):
            progress.step()
        progress.note("waiting [y]")
        return MADE

    monkeypatch.setattr(kernel, "build", build)
    monkeypatch.setattr(kernel, "build_modules", lambda made, progress: Path("/m"))
    command = ["build", "--source", "x.tar", "--suite", "sid", "--debug", "-j", "3", "--newest"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert asked == [Request("newest", Path("x.tar"), "sid", True, 3)]
    assert "Linux 6.12.117 is ready: /k/build/linux" in result.output
    assert "compiling [x]" in result.output
    assert "waiting [y]" in result.output


@pytest.mark.parametrize("options", [["-j", "0"], ["--newest", "--version", "6.12"], ["--nosuch"]])
def test_bad_options_have_status_two(options: list[str]) -> None:
    assert CliRunner().invoke(app, ["build", *options]).exit_code == 2


def test_list_says_how_to_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path))
    assert "isoblk kernel build" in CliRunner().invoke(app, ["list"]).output
    monkeypatch.setattr(kernel, "list_kernels", lambda: [MADE])
    assert "6.12.117-abc" in CliRunner().invoke(app, ["list"]).output


def test_clean_of_an_empty_cache_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path))
    result = CliRunner().invoke(app, ["clean", "--all"])
    assert (result.exit_code, result.output) == (0, "0 MB freed\n")
