# SPDX-License-Identifier: GPL-2.0-only
"""A browser, and pages of made-up results for it to show."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from isoblk.analysis.metrics import analyse
from isoblk.report.page import write_report
from isoblk.result.store import read_results
from isoblk.study.model import ClaimEntry
from tests.unit import resultgen
from tests.unit.resultgen import Made, tenant

_ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]

CLAIMS = [
    ClaimEntry(
        text=text,
        source=source,
        metric="share_error",
        op="<",
        value=value,
        where={"scheduler": "bfq"},
    )
    for text, source, value in (
        ("BFQ divides by weight", "isoblk, what it promises", 0.05),
        ("BFQ divides <exactly>", "P3, Figure 3", 0.05),
        ("BFQ is perfect", "P2, Figure 3", 0.0001),
    )
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The address of a page of each kind of study, by its name."""
    made = tmp_path_factory.mktemp("pages")
    resultgen.weights_study(made / "weights", claims=CLAIMS)
    resultgen.count_study(made / "count", counts=(4, 8, 16, 32, 64))
    resultgen.event_study(made / "event")
    resultgen.write(made / "light", _light(), title="A light reader beside two that stream")
    resultgen.write(made / "bad", _bad(), title="Nothing is valid")
    pages = {}
    for directory in sorted(made.iterdir()):
        pages[directory.name] = write_report(analyse(read_results(directory))).as_uri()
    return pages


def _light() -> list[Made]:
    """A light reader whose wait alone is known, under schedulers whose names are long."""
    tenants = [tenant(name, 100) for name in ("reader", "writer-1", "writer-2")]
    alone = [
        Made(
            "none",
            {one.name: 1000.0 if one.name == "reader" else 90_000.0},
            kind="alone",
            tenants=[one],
            point={"alone": one.name},
            latency={20_000: 1000},
        )
        for one in tenants
    ]
    rates = {"reader": 1000.0, "writer-1": 40_000.0, "writer-2": 40_000.0}
    together = {"none": 3_000_000_000, "bfq": 5_000_000, "mq-deadline": 90_000, "isoblk": 30_000}
    return alone + [
        Made(
            name,
            rates,
            point={"device.flash.precondition": state},
            tenants=tenants,
            alone=[0, 1, 2],
            reference=None if name == "none" else 3 + 4 * at,
            latency={p99 * (at + 1): 1000},
        )
        for at, state in enumerate(("none", "random"))
        for name, p99 in together.items()
    ]


def _bad() -> list[Made]:
    reasons = ["io.bfq.weight did not take"]
    tenants = [tenant("a", 100), tenant("b", 300)]
    rates = {"a": 100.0, "b": 300.0}
    return [Made("bfq", rates, tenants=tenants, status="invalid", reasons=reasons)]
