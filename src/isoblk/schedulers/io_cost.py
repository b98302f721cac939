# SPDX-License-Identifier: GPL-2.0-only
"""io.cost: a cost per request by a model of the device, and weights of the device's time."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec

from isoblk.run import limits
from isoblk.run.field import Field, FieldError, suggest, within
from isoblk.run.limits import Range
from isoblk.run.options import said
from isoblk.run.setting import Setting
from isoblk.run.spec import Scheduler, Workload
from isoblk.run.tier import Place
from isoblk.schedulers.base import Asked, Measured, Measurement, pairs
from isoblk.schedulers.controller import Controller

FILES = ("io.cost.model", "io.cost.qos")
"""In the root of the hierarchy, with a line per device."""

# Documentation/admin-guide/cgroup-v2.rst, io.cost.qos. A run sets `enable` itself.
QOS = ("ctrl", "rpct", "rlat", "wpct", "wlat", "min", "max")
_QOS_SCALE = Range(1, 10_000)  # min and max, per cent
_LATENCY_US = Range(0, 60_000_000)
COEFFICIENT = Range(1, (1 << 53) - 1)

# The coefficients of io.cost.model in the order in which iocost_coef_gen.py (tools/cgroup in the
# kernel's source) measures them, with its options of fio: rw, iodepth and bs. The script's
# sequential block is 128 MiB; here it is the largest of the generator, 32 MiB. The kernel splits
# either into requests of max_sectors_kb, some 25 in flight.
MODEL = {
    "rbps": Measurement(Workload(rw="read", bs=limits.MAX_BLOCK), "read", "bytes"),
    "rseqiops": Measurement(Workload(rw="read", bs=4096, iodepth=64), "read", "ios"),
    "rrandiops": Measurement(Workload(rw="randread", bs=4096, iodepth=64), "read", "ios"),
    "wbps": Measurement(Workload(rw="write", bs=limits.MAX_BLOCK), "write", "bytes"),
    "wseqiops": Measurement(Workload(rw="write", bs=4096, iodepth=64), "write", "ios"),
    "wrandiops": Measurement(Workload(rw="randwrite", bs=4096, iodepth=64), "write", "ios"),
}


class IoCostTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """[io_cost]: model "calibrated" (measured on the device first, as by the kernel's
    iocost_coef_gen.py) or the six coefficients; qos in the format of io.cost.qos."""

    model: Annotated[
        Literal["calibrated"] | dict[str, int],
        said('The six coefficients of io.cost.model, or "calibrated".'),
    ] = "calibrated"
    qos: Annotated[
        dict[str, int | float | str], said("Parameters of io.cost.qos: " + ", ".join(QOS) + ".")
    ] = {}


class IoCost(Controller):
    """block/blk-iocost.c."""

    name = "io.cost"
    table = "io_cost"
    measured_first = "the coefficients of io.cost.model"
    weight_files: Mapping[str, str] = {"v2": "io.weight"}

    def check(self, table: msgspec.Struct) -> None:
        """Check the coefficients and the qos."""
        assert isinstance(table, IoCostTable)
        if isinstance(table.model, dict):
            _check_model(table.model)
        for key, value in table.qos.items():
            _check_qos(key, value)

    def check_beside_running(self, scheduler: Scheduler, tenant: Field) -> None:
        """Refuse to calibrate, because it writes anywhere."""
        if scheduler.io_cost_model is None:
            raise FieldError(
                ("io_cost", "model"),
                "a calibration writes to the disk, which is in use",
                next="give the six coefficients",
            )

    def make(self, asked: Asked) -> Scheduler:
        """Return io.cost with the study's model; None before it is measured."""
        assert isinstance(asked.table, IoCostTable)
        model = asked.table.model
        return Scheduler(
            name=self.name,
            elevator=self.elevator,
            io_cost_qos=asked.table.qos,
            io_cost_model=model if isinstance(model, dict) else None,
        )

    def measurements(self, scheduler: Scheduler) -> Mapping[str, Measurement]:
        """Return the six coefficients' measurements, unless the study gives the coefficients."""
        return MODEL if scheduler.io_cost_model is None else {}

    def complete(self, scheduler: Scheduler, measured: Measured) -> Scheduler:
        """Return io.cost with the measured coefficients."""
        if scheduler.io_cost_model is not None:
            return scheduler
        if measured.figures is None or set(measured.figures) != set(MODEL):
            raise ValueError("io.cost needs the six coefficients of its model")
        # For the kernel, I/O with a coefficient of 0 costs nothing.
        model = {name: max(1, measured.figures[name]) for name in MODEL}
        return msgspec.structs.replace(scheduler, io_cost_model=model)

    def device_settings(self, scheduler: Scheduler, place: Place) -> Iterator[Setting]:
        """Yield the model and the qos."""
        if scheduler.io_cost_model is None:
            raise ValueError("io.cost without a model: the calibration has not run")
        model_file, qos_file = (f"{place.hierarchy}/{name}" for name in FILES)
        model = {"ctrl": "user", "model": "linear"} | scheduler.io_cost_model
        yield Setting(model_file, pairs(model), "pairs")
        # "ctrl=user" uses the values of the same line; without any the kernel chooses.
        own: dict[str, int | float | str] = {"enable": 1}
        qos = own | {"ctrl": "user"} | scheduler.io_cost_qos if scheduler.io_cost_qos else own
        yield Setting(qos_file, pairs(qos), "pairs")


def _check_model(model: Mapping[str, int]) -> None:
    field = ("io_cost", "model")
    for key, value in model.items():
        if key not in MODEL:
            raise FieldError((*field, key), "unknown coefficient", next=suggest(key, MODEL))
        within((*field, key), value, COEFFICIENT)
    if missing := [key for key in MODEL if key not in model]:
        raise FieldError(
            field,
            "missing " + ", ".join(missing),
            next='give all six, or model = "calibrated"',
        )


def _check_qos(key: str, value: int | float | str) -> None:
    field: Field = ("io_cost", "qos", key)
    if key == "enable":
        raise FieldError(field, "is set by the run itself", next="remove it")
    if key not in QOS:
        raise FieldError(field, "unknown", next=suggest(key, QOS))
    if key == "ctrl":
        if value not in ("auto", "user"):
            raise FieldError(field, f"unknown value {value!r}", next="allowed: auto, user")
    elif isinstance(value, str):
        raise FieldError(field, f"expected a number, got {value!r}")
    elif key in ("rlat", "wlat"):
        if not isinstance(value, int) or value not in _LATENCY_US:
            raise FieldError(
                field,
                f"{value} is not a latency",
                next=f"allowed: whole microseconds, {_LATENCY_US}",
            )
    elif key in ("rpct", "wpct"):
        within(field, value, limits.PERCENT)
    else:
        within(field, value, _QOS_SCALE)
