# SPDX-License-Identifier: GPL-2.0-only
"""What weights a cgroup has been given, by its own files and those of a container in it."""

import os
from pathlib import Path

import pytest

from isoblk.weights import cgroup
from isoblk.weights.lines import Weights


@pytest.mark.parametrize(
    ("name", "own", "inner", "want"),
    [
        ("libpod-1.scope", "default 100\n", "default 400\n", {"default": 400}),
        ("libpod-1.scope", "default 50\n", "default 400\n", {"default": 50}),
        ("libpod-1.scope", "259:0 7\n", "default 400\n", {"default": 400, "259:0": 7}),
        ("web.slice", "default 100\n", "default 400\n", {}),
    ],
)
def test_a_scope_has_the_weight_of_the_container_in_it(
    tmp_path: Path, name: str, own: str, inner: str, want: Weights
) -> None:
    scope = tmp_path / name
    (scope / "container").mkdir(parents=True)
    (scope / "io.weight").write_text(own)
    (scope / "container/io.weight").write_text(inner)
    directory = os.open(scope, os.O_PATH)
    try:
        assert cgroup.wanted(directory) == want
    finally:
        os.close(directory)


def test_a_scope_without_a_container_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.scope").mkdir()
    (tmp_path / "a.scope/io.weight").write_text("default 300\n")
    directory = os.open(tmp_path / "a.scope", os.O_PATH)
    try:
        assert cgroup.wanted(directory) == {"default": 300}
        with cgroup.scope_of(directory) as scope:
            assert scope is None
    finally:
        os.close(directory)
