# SPDX-License-Identifier: GPL-2.0-only
"""isoblk: weights at the disk's full speed, and low latency for light users of the disk."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from isoblk.run.field import Field, FieldError, suggest
from isoblk.run.limits import SWITCH, Range
from isoblk.run.setting import Form, Setting
from isoblk.run.spec import Scheduler, Workload
from isoblk.run.tier import Place
from isoblk.schedulers.base import Asked, Measured, Measurement, Tunables
from isoblk.schedulers.io_cost import COEFFICIENT, MODEL
from isoblk.schedulers.own import OwnElevator

COST_MODEL = "cost_model"
"""The tunable with the costs of requests."""
AUTO, BYTES, CALIBRATED = "auto", "bytes", "calibrated"
USER = "user"
"""First word of the tunable after the six coefficients were written."""

_FIELD: Field = ("iosched", "isoblk", COST_MODEL)
_NUMBER = re.compile(r"[0-9]{1,40}", re.ASCII)
_MIB, _PAGE = 1 << 20, 4096
_PAGES = _MIB // _PAGE
_FASTEST = 1000
# Writes are measured after the drive's buffer is full.
_FILL_NS = 1_000_000_000

# The coefficients in the order of the tunable. Large requests keep the device busy, as sequential
# ones do; small ones as in io.cost's model.
OWN_MODEL = {
    "rbps": Measurement(Workload(rw="read", bs=_MIB, iodepth=32), "read", "bytes"),
    "rseqiops": MODEL["rseqiops"],
    "rrandiops": MODEL["rrandiops"],
    "wbps": Measurement(Workload(rw="write", bs=_MIB, iodepth=32), "write", "bytes", _FILL_NS),
    "wseqiops": replace(MODEL["wseqiops"], warmup_ns=_FILL_NS),
    "wrandiops": replace(MODEL["wrandiops"], warmup_ns=_FILL_NS),
}
_LINE = " ".join(f"{name}=N" for name in OWN_MODEL)
# Tunables of former releases, and their replacements.
_REMOVED = {
    "account": f'set {COST_MODEL} = "{BYTES}" to divide bytes, or remove it',
    "idle_loss": "set max_loss, or remove it",
}


class Isoblk(OwnElevator):
    """kernel/sched/isoblk; docs/concepts/isoblk.md."""

    name = "isoblk"
    tunables: Mapping[str, Range] | None = {
        "gate": SWITCH,
        "window": Range(1, (1 << 30) - 1),
        "hold_us": Range(1, 10_000_000),
        "idle_us": Range(0, 1_000_000),
        "max_loss": Range(0, 1000),
        "merge_kb": Range(4, (1 << 21) - 1),
    }
    tunable_words: Mapping[str, str] = {
        COST_MODEL: f"`{CALIBRATED}` (default), `{AUTO}`, `{BYTES}` or `{_LINE}`"
    }
    tunable_forms: Mapping[str, Form] = {COST_MODEL: "model"}
    measured_first = "the coefficients of isoblk's cost model"

    def check_tunables(self, iosched: Tunables) -> None:
        """Check the cost model, and that no tunable of a former release is set."""
        for name, instead in _REMOVED.items():
            if name in iosched:
                raise FieldError(("iosched", self.name, name), "no such tunable", next=instead)
        if COST_MODEL in iosched:
            cost_model(iosched[COST_MODEL])

    def make(self, asked: Asked) -> Scheduler:
        """Return isoblk with the study's cost model. Without one the device is measured, unless it
        may not be written."""
        default = AUTO if asked.no_calibration else CALIBRATED
        model = cost_model(asked.iosched.get(COST_MODEL, default))
        if model == CALIBRATED and asked.no_calibration:
            raise FieldError(
                _FIELD,
                f"the disk cannot be calibrated: {asked.no_calibration}",
                next=f'set "{AUTO}", "{BYTES}" or the six coefficients',
            )
        own = super().make(asked)
        return msgspec.structs.replace(own, iosched={**own.iosched, COST_MODEL: model})

    def measurements(self, scheduler: Scheduler) -> Mapping[str, Measurement]:
        """Return the six coefficients' measurements, if they are to be calibrated."""
        return OWN_MODEL if scheduler.iosched.get(COST_MODEL) == CALIBRATED else {}

    def complete(self, scheduler: Scheduler, measured: Measured) -> Scheduler:
        """Return isoblk with the measured coefficients."""
        if not self.measurements(scheduler):
            return scheduler
        if measured.figures is None or not set(OWN_MODEL) <= set(measured.figures):
            raise ValueError("isoblk needs the six coefficients of its cost model")
        # The kernel refuses 0.
        figures = {name: max(1, measured.figures[name]) for name in OWN_MODEL}
        for bps, iops in (("rbps", "rseqiops"), ("wbps", "wseqiops")):
            figures[bps] = _of_data(figures[bps], figures[iops])
        line = _line(figures)
        return msgspec.structs.replace(scheduler, iosched={**scheduler.iosched, COST_MODEL: line})

    def device_settings(self, scheduler: Scheduler, place: Place) -> Iterator[Setting]:
        """Yield nothing: isoblk has only tunables, which must be known by now."""
        if self.measurements(scheduler):
            raise ValueError("isoblk without a cost model: the calibration has not run")
        return iter(())


def cost_model(value: int | str, words: Sequence[str] = (CALIBRATED, AUTO, BYTES)) -> str:
    """Return a cost model in the format of the tunable, or one of the words.

    Raises:
        FieldError: it is neither a word nor a line of the six coefficients.
    """
    text = str(value).strip()
    if text in words:
        return text
    named = ", ".join(f'"{word}"' for word in words)
    allowed = f'allowed: {named} or "{_LINE}"'
    if "=" not in text:
        raise FieldError(_FIELD, f"unknown value {value!r}", next=allowed)
    coefficients: dict[str, int] = {}
    for word in text.split():
        name, equals, number = word.partition("=")
        if not equals:
            raise FieldError(_FIELD, f"{word!r} is not NAME=N", next=allowed)
        if name not in OWN_MODEL:
            raise FieldError(_FIELD, f"unknown coefficient {name!r}", next=suggest(name, OWN_MODEL))
        if name in coefficients:
            raise FieldError(_FIELD, f"{name} is there twice", next="keep one of them")
        if not _NUMBER.fullmatch(number) or int(number) not in COEFFICIENT:
            raise FieldError(
                _FIELD,
                f"{word} is not a coefficient",
                next=f"allowed: whole numbers, {COEFFICIENT}",
            )
        coefficients[name] = int(number)
    if lacking := [name for name in OWN_MODEL if name not in coefficients]:
        raise FieldError(_FIELD, f"{', '.join(lacking)} missing", next=f'give all six: "{_LINE}"')
    return _line(coefficients)


def shown(text: str) -> tuple[str, dict[str, int]]:
    """Parse the tunable: its first word (AUTO, BYTES, USER), and the coefficients.

    Raises:
        ValueError: a coefficient is not a number.
    """
    word, _, rest = text.strip().partition(" ")
    pairs = (pair.partition("=") for pair in rest.split())
    return word, {name: int(number) for name, _, number in pairs}


def to_write(text: str) -> str:
    """Convert the tunable's text to the value that must be written for it."""
    word, _, rest = text.partition(" ")
    return rest if word == USER else word


def _of_data(bps: int, iops: int) -> int:
    """Return bytes per second of the data alone, with which the model's cost of large requests is
    as measured.

    In the model a request of n pages costs f + n p; measured were f + p = 1 / iops and f + 256 p =
    MiB / bps. If the size hardly matters, the result is _FASTEST times bps.
    """
    large, small = _MIB / bps, 1 / iops
    page = max((large - small) / (_PAGES - 1), large / _PAGES / _FASTEST)
    return min(round(_PAGE / page), COEFFICIENT.high)


def _line(coefficients: Mapping[str, int]) -> str:
    return " ".join(f"{name}={coefficients[name]}" for name in OWN_MODEL)
