# SPDX-License-Identifier: GPL-2.0-only
"""The repository's scripts, as modules."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def load_script(name: str) -> ModuleType:
    """The module that scripts/NAME.py is."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_packaging(name: str) -> ModuleType:
    """The module that packaging/NAME.py is; it imports those beside it."""
    place = str(ROOT / "packaging")
    if place not in sys.path:
        sys.path.append(place)
    return importlib.import_module(name)
