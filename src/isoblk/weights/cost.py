# SPDX-License-Identifier: GPL-2.0-only
"""Choose a disk's cost model for isoblk: the user's, the drive model's, or the generic one.

The drive model's is from udev's database of io.cost, of any firmware, else from drives.csv. A name
matches as a whole, never as a prefix, since a wrong model is worse than the generic one: a 970 PRO
does six times the random writes of a 970 EVO. Blanks and underscores are equal, since udev replaces
blanks by underscores.
"""

import contextlib
import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isoblk.errors import UserError
from isoblk.machine.iocost_hwdb import databases, read_hwdb
from isoblk.run.field import FieldError
from isoblk.schedulers.isoblk import AUTO, BYTES, OWN_MODEL, cost_model

DRIVES: Final = Path(__file__).with_name("drives.csv")
_WORDS: Final = (AUTO, BYTES)


@dataclass(frozen=True)
class CostModel:
    """text: the value of the tunable. source: origin of the model, in words."""

    text: str
    source: str


_GENERIC: Final = CostModel(
    AUTO, "generic cost model of its kind; better: measure the drive, see docs/guides/weights.md"
)


def parse(given: str) -> CostModel:
    """Parse the user's cost model.

    Raises:
        UserError: the tunable does not accept it.
    """
    try:
        text = cost_model(given, _WORDS)
    except FieldError as error:
        raise UserError(error.cause, where="--cost-model", next=error.next) from None
    sources = {AUTO: "generic cost model of its kind", BYTES: "cost model of bytes alone"}
    return CostModel(text, sources.get(text, "cost model as given"))


def find(model: str) -> CostModel:
    """Find the cost model of a disk's model, any text; the generic cost model if unknown."""
    name = _same(model)
    for known, figures, source in _known():
        if name and name == _same(known):
            line = " ".join(f"{figure}={figures[figure]}" for figure in OWN_MODEL)
            return CostModel(cost_model(line, _WORDS), f"cost model of {model}, {source}")
    return _GENERIC


def _known() -> Iterator[tuple[str, Mapping[str, object], str]]:
    """Yield name, coefficients and source of drive models. The first of a name applies."""
    # A damaged database must not prevent setting a scheduler.
    with contextlib.suppress(UserError):
        for one in read_hwdb(databases()).known:
            yield one.model, one.figures, "from udev's database of io.cost"
    with DRIVES.open(encoding="utf-8", newline="") as file:
        for drive in csv.DictReader(line for line in file if not line.startswith("#")):
            yield drive["drive"], drive, "from isoblk's table of drives"


def _same(name: str) -> str:
    return " ".join(name.replace("_", " ").split())
