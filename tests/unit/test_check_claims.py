# SPDX-License-Identifier: GPL-2.0-only
"""`isoblk run --check-claims` ends with 1 unless every claim holds, and names those that do not."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from isoblk.cli import main, run
from isoblk.errors import RunError
from isoblk.lab import Lab, lab
from isoblk.result.store import read_results
from isoblk.run.spec import MatrixValue
from isoblk.run.tier import SMP, UML, Tier
from isoblk.study.model import ClaimEntry

from . import resultgen
from .fakes import FakeMachine, fake_lab

BFQ: dict[str, MatrixValue] = {"scheduler": "bfq"}


def _claim(text: str, value: float) -> ClaimEntry:
    return ClaimEntry(
        text=text, source="ours", metric="total_vs_none", op=">", value=value, where=BFQ
    )


def test_claims_that_hold_pass(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path, claims=[_claim("a third", 0.3)])
    run.require_claims(read_results(tmp_path))


def test_a_claim_that_fails_is_named(tmp_path: Path) -> None:
    resultgen.weights_study(
        tmp_path, claims=[_claim("a third", 0.3), _claim("half", 0.5), _claim("all", 1)]
    )
    with pytest.raises(RunError) as caught:
        run.require_claims(read_results(tmp_path))
    assert caught.value.exit_status == 1
    assert caught.value.cause == "2 of 3 claims do not hold; fails: 'half', 'all'"
    assert "\n" not in str(caught.value)


def test_an_undecided_claim_does_not_pass(tmp_path: Path) -> None:
    resultgen.weights_study(tmp_path, tier="qemu", claims=[_claim("a third", 0.3)])
    with pytest.raises(RunError, match="1 of 1 claims do not hold; undecided: 'a third'"):
        run.require_claims(read_results(tmp_path))


class _Machine(FakeMachine):
    def stop(self) -> None:
        pass


STUDY = """
name = "s"
device = "fast"
[run]
runtime = "1s"
[[tenant]]
name = "a"
[[tenant]]
name = "b"
[matrix]
scheduler = ["none", "bfq"]
[[claim]]
text = "much"
source = "ours"
metric = "total_iops"
op = ">"
value = {least}
where = {{ scheduler = "bfq" }}
"""


@pytest.mark.parametrize(
    ("least", "tier", "options", "status", "told"),
    [
        (1000, UML, ["--check-claims"], 0, ""),
        (9000, UML, ["--check-claims"], 1, "1 of 1 claims do not hold; fails: 'much'; see: "),
        (1000, SMP, ["--check-claims"], 1,
         "undecided: 'much' (one run has no interval; repeat it); see: "),
        (9000, UML, [], 0, ""),
    ],
)  # fmt: skip
def test_the_exit_status_follows_the_claims_and_the_runs_are_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    least: int,
    tier: Tier,
    options: list[str],
    status: int,
    told: str,
) -> None:
    fake = fake_lab(_Machine(tier=tier))
    monkeypatch.setattr(Lab, "open", lambda machine, **options: nullcontext(fake))
    monkeypatch.setattr(lab, "try_out", lambda bench, directory: None)
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(STUDY.format(least=least))
    monkeypatch.setattr("sys.argv", ["isoblk", "run", "s.toml", *options])
    with pytest.raises(SystemExit) as ended:
        main.main()
    said = capsys.readouterr()
    assert ended.value.code == status
    assert told in said.err
    assert said.err.count("isoblk: ") == status
    assert "2.00 K" in said.out


def test_a_study_without_claims_has_none_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    path.write_text('name = "s"\ndevice = "fast"\n[[tenant]]\nname = "t"\n')
    monkeypatch.setattr("sys.argv", ["isoblk", "run", str(path), "--check-claims"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (f"isoblk: {path}: has no claims to check; add a [[claim]]\n")
