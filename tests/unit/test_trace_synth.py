# SPDX-License-Identifier: GPL-2.0-only
"""Made traces have the statistics that their recipe states, and are the same every time."""

from pathlib import Path

import msgspec
import pytest

from isoblk import paths
from isoblk.errors import UserError
from isoblk.trace.compact import SUFFIX, read_blocks, read_header
from isoblk.trace.info import TraceInfo, describe
from isoblk.trace.resolve import resolve, stand_ins, title
from isoblk.trace.synth import Arrival, Recipe, Size, Space, load_recipe, synthesize

from .tracegen import KINDS, requests, spc

BASE = Recipe(title="t", duration="100s", rate=2000, read=0.3, space=Space(footprint="1g"), seed=7)


def made(recipe: Recipe, tmp_path: Path) -> TraceInfo:
    synthesize(recipe, tmp_path / "o")
    return describe(tmp_path / "o")


def changed(**fields: object) -> Recipe:
    return msgspec.structs.replace(BASE, **fields)


def test_rate_mix_and_footprint(tmp_path: Path) -> None:
    found = made(BASE, tmp_path)
    assert found.records == 200_000
    assert found.span_ns == pytest.approx(100e9, rel=0.01)
    assert found.ops[0].share == pytest.approx(0.3, abs=0.005)
    assert found.max_end <= 1 << 30
    assert found.footprint > 0.5 * (1 << 30)
    assert found.gap_cv == pytest.approx(1, abs=0.02)
    assert found.streams[0].stream == 0


def test_sizes_follow_their_weights(tmp_path: Path) -> None:
    found = made(changed(size=Size(read="4k/60:8k/40", write="512/1:64k/3")), tmp_path)
    shares = {op.op: {s: n / op.records for s, n in op.sizes} for op in found.ops}
    assert shares["read"] == pytest.approx({4096: 0.6, 8192: 0.4}, abs=0.01)
    assert shares["write"] == pytest.approx({512: 0.25, 65536: 0.75}, abs=0.01)


def test_sequential_part_and_streams(tmp_path: Path) -> None:
    found = made(changed(space=Space(footprint="8g", sequential=0.7, streams=5)), tmp_path)
    assert found.sequential == pytest.approx(0.7, abs=0.01)
    assert [stream.stream for stream in found.streams] == [1, 2, 3, 4, 5]
    assert found.max_end <= 8 << 30


def test_runs_that_reach_the_end_go_on_in_the_footprint(tmp_path: Path) -> None:
    found = made(changed(space=Space(footprint="1m", sequential=0.99)), tmp_path)
    assert found.max_end <= 1 << 20


def test_hot_spots_are_as_hot_as_stated(tmp_path: Path) -> None:
    space = Space(footprint="10m", model="hot", hot=(0.1, 0.9))
    assert dict(made(changed(space=space), tmp_path).hot)[0.1] == pytest.approx(0.9, abs=0.01)


def test_a_larger_theta_is_more_skewed(tmp_path: Path) -> None:
    shares = [
        dict(made(changed(space=Space(footprint="400m", model="zipf", theta=t)), tmp_path).hot)[0.1]
        for t in (0.5, 0.9, 1.2)
    ]
    assert shares == sorted(shares)
    # Of a continuous Zipf distribution with theta 0.5 the first tenth has the root of a tenth.
    assert shares[0] == pytest.approx(0.1**0.5, abs=0.05)


def test_bursts_grow_with_the_bias(tmp_path: Path) -> None:
    found = [
        {b.window_ns: b.dispersion for b in made(changed(arrival=arrival), tmp_path).bursts}
        for arrival in (
            Arrival(),
            Arrival(model="bmodel", bias=0.5),
            Arrival(model="bmodel", bias=0.6),
            Arrival(model="bmodel", bias=0.75),
        )
    ]
    one = [at[1_000_000_000] for at in found]
    assert one[0] == pytest.approx(1, abs=0.5)
    assert one[1] == pytest.approx(1, abs=0.5)
    assert 10 < one[2] < one[3]


def test_on_off_arrivals_come_in_the_on_periods_only(tmp_path: Path) -> None:
    arrival = Arrival(model="onoff", on="10ms", off="90ms")
    found = made(changed(arrival=arrival), tmp_path)
    assert found.records == 200_000
    busy = sum(1 for r, w in zip(found.reads_by_slice, found.writes_by_slice, strict=True) if r + w)
    assert busy / len(found.reads_by_slice) < 0.2
    assert found.span_ns == pytest.approx(100e9, rel=0.1)


@pytest.mark.parametrize(
    "arrival", [Arrival(), Arrival(model="bmodel"), Arrival(model="onoff")], ids=lambda a: a.model
)
def test_the_same_recipe_gives_the_same_bytes_and_another_seed_others(
    arrival: Arrival, tmp_path: Path
) -> None:
    recipe = changed(arrival=arrival, duration="5s")
    for name, one in (("a", recipe), ("b", recipe), ("c", msgspec.structs.replace(recipe, seed=8))):
        synthesize(one, tmp_path / name)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_times_do_not_decrease_across_chunks(tmp_path: Path) -> None:
    synthesize(changed(duration="400s", arrival=Arrival(model="bmodel")), tmp_path / "o")
    last = 0
    for block in read_blocks(tmp_path / "o"):
        assert int(block["t"][0]) >= last
        assert (block["t"][1:] >= block["t"][:-1]).all()
        last = int(block["t"][-1])


RECIPE = 'title = "t"\nduration = "1s"\nrate = 10\nread = 0.5\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('title = "t"', "missing required field"),
        (RECIPE + "[space]\n", "footprint"),
        (RECIPE + '[space]\nfootprint = "x"\n', "space.footprint: 'x' is not a size"),
        (RECIPE + '[space]\nfootprint = "1k"\n', "smaller than a request"),
        (RECIPE + '[space]\nfootprint = "1g"\nmodel = "odd"\n', "invalid enum value 'odd'"),
        (RECIPE + '[space]\nfootprint = "1g"\nalign = "100"\n', "not a multiple of 512"),
        (RECIPE + '[space]\nfootprint = "1g"\ntheta = 1.0\n', "space.theta"),
        (RECIPE + '[space]\nfootprint = "1g"\n[size]\nread = "4k/x"\n', "size.read: 'x'"),
        (RECIPE + '[space]\nfootprint = "1g"\n[size]\nread = "4001"\n', "size.read"),
        (RECIPE + '[space]\nfootprint = "1g"\n[arrival]\nbias = 1.0\n', "arrival.bias"),
        (RECIPE.replace("10", "0") + '[space]\nfootprint = "1g"\n', "rate"),
        ("a = ", "invalid value"),
    ],
)
def test_a_wrong_recipe_is_told(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_recipe(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


# P2 (IIBC 20(3), 2020) gives these; of WebSearch 99.98 % are reads.
PUBLISHED = {"exchange": 0.29, "msnmeta": 2.97, "financial": 0.3, "msnfs": 2.04}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOBLK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ISOBLK_TRACES", raising=False)
    return tmp_path / "cache" / "traces"


@pytest.mark.parametrize("name", PUBLISHED)
def test_stand_ins_have_the_published_mix(name: str, cache: Path) -> None:
    found = describe(resolve(name))
    assert found.read_write == pytest.approx(PUBLISHED[name], rel=0.02)
    assert found.records > 400_000
    dispersion = {burst.window_ns // 10**8: burst.dispersion for burst in found.bursts}
    assert max(dispersion.values()) > 10  # bursty, unlike a Poisson process


def test_the_financial_stand_in_has_the_published_rate_and_sizes(cache: Path) -> None:
    found = describe(resolve("financial"))
    sizes = {op.op: op.mean_bytes / 1024 for op in found.ops}
    assert found.iops == pytest.approx(122, rel=0.01)
    assert sizes["read"] == pytest.approx(2.3, rel=0.03)
    assert sizes["write"] == pytest.approx(3.7, rel=0.03)
    assert found.sequential == pytest.approx(0.02, abs=0.003)


def test_the_websearch_stand_in_is_nearly_all_reads_of_15_kib(cache: Path) -> None:
    found = describe(resolve("websearch"))
    assert found.ops[0].share == pytest.approx(0.9998, abs=0.0002)
    assert found.ops[0].mean_bytes / 1024 == pytest.approx(15.1, rel=0.05)
    assert found.sequential == pytest.approx(0.14, abs=0.01)


def test_every_stand_in_says_that_it_is_one() -> None:
    assert stand_ins() == ["exchange", "financial", "msnfs", "msnmeta", "websearch"]
    for name in stand_ins():
        path = paths.stand_ins_dir() / f"{name}.toml"
        assert load_recipe(path).title.startswith("stand-in for ")
        assert "NOT that" in path.read_text()


def test_a_file_is_imported_once_by_content(cache: Path, tmp_path: Path) -> None:
    source = tmp_path / "x.spc"
    source.write_bytes(spc(requests(KINDS["spc"], 50)))
    first = resolve(source)
    made_at = first.stat().st_mtime_ns
    source.rename(tmp_path / "y")
    assert resolve(str(tmp_path / "y")) == first
    assert first.stat().st_mtime_ns == made_at
    assert read_header(first).records == 50
    assert resolve(first) == first


def test_a_users_own_file_takes_the_place_of_a_stand_in(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("ISOBLK_TRACES", str(own))
    assert read_header(resolve("financial")).records > 400_000
    assert title("financial") == "financial (stand-in)"
    (own / "financial.spc").write_bytes(spc(requests(KINDS["spc"], 33)))
    assert read_header(resolve("financial")).records == 33
    assert title("financial") == "financial"
    (own / f"financial{SUFFIX}").write_bytes(resolve("financial").read_bytes())
    with pytest.raises(UserError, match="several traces are named financial"):
        resolve("financial")


def test_an_unknown_name_is_told_with_those_there_are(cache: Path) -> None:
    with pytest.raises(UserError, match="no such trace; name a file, or one of: exchange"):
        resolve("exchnge")


def test_recipes_of_ones_own_are_resolved(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(RECIPE + '[space]\nfootprint = "1g"\n')
    assert read_header(resolve(path)).records == 10
    assert len(list(cache.iterdir())) == 1
