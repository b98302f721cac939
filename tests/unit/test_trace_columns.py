# SPDX-License-Identifier: GPL-2.0-only
"""Tables whose columns a user names: read as named, and never guessed."""

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from isoblk.cli.trace import app
from isoblk.errors import UserError
from isoblk.trace.batch import TIME_UNITS
from isoblk.trace.convert import import_trace
from isoblk.trace.formats.columns import SEPARATORS, Columns, parse_columns, parse_ops, unit_bytes
from tests.examples import at_most

from .tracegen import Request, held

ORDER = "time,op,offset,size"
SLOW = settings(
    max_examples=at_most(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def imported(directory: Path, text: str | bytes, *words: str) -> list[Request]:
    source, output = directory / "t.csv", directory / "o.isotrace"
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = run("import", source, "-o", output, "--force", *words)
    if result.exception is not None:
        raise result.exception
    return held(output)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(directory: Path, text: str | bytes, *words: str) -> str:
    with pytest.raises(UserError) as caught:
        imported(directory, text, *words)
    assert caught.value.exit_status == 2
    assert "\n" not in str(caught.value)
    assert not (directory / "o.isotrace").exists()
    return str(caught.value)


TWO = [(0, 4096, 512, 0, 0), (1500, 8192, 1024, 1, 0)]
SAME = {
    "no header": ("10,R,4096,512\n11.5,W,8192,1024\n", ORDER),
    "a header": ("time,op,offset,size\n10,read,4096,512\n11.5,write,8192,1024\n", ORDER),
    "a header of another order": ("op,Size,offset,time\nr,512,4096,10\nw,1024,8192,11.5\n", ORDER),
    "a header with more": (
        "time,host,op,offset,size\n10,a,R,4096,512\n11.5,a,W,8192,1024\n",
        ORDER,
    ),
    "unused columns": ("x,10,R,4096,512,9\nx,11.5,W,8192,1024,9\n", f"-,{ORDER},-"),
    "names": (
        "ts,lba,len,rw\n10,4096,512,R\n11.5,8192,1024,W\n",
        "time=ts,op=rw,offset=LBA,size=len",
    ),
    "positions": ("4096;512;R;10\n8192;1024;W;11.5\n", "time=4,op=3,offset=1,size=2"),
    "positions below a header": (
        "a;b;c;d\n4096;512;R;10\n8192;1024;W;11.5\n",
        "time=4,op=3,offset=1,size=2",
    ),
    "tabs around empty columns": (
        "\t10\tR\t4096\t512\t\n\t11.5\tW\t8192\t1024\t\n",
        f"-,{ORDER},-",
    ),
    "tabs": ("10\tR\t4096\t512\n11.5\tW\t8192\t1024\n", ORDER),
    "spaces": ("  10  R 4096 512\n11.5 W   8192 1024\n", ORDER),
    "a comment as header": ("# time op offset size\n10 R 4096 512\n11.5 W 8192 1024\n", ORDER),
    "quotes": ('"time","op","offset","size"\n10,"R",4096,512\n11.5,"W",8192,1024\n', ORDER),
    "a separator in quotes": (
        'who,time,op,offset,size\n"a, b",10,R,4096,512\n"c",11.5,W,8192,1024\n',
        ORDER,
    ),
    "a byte order mark, CRLF and blank lines": (
        "\ufefftime,op,offset,size\r\n\r\n10,R,4096,512\r\n\r\n11.5,W,8192,1024",
        ORDER,
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_the_same_requests_in_many_forms(tmp_path: Path, what: str) -> None:
    text, columns = SAME[what]
    assert imported(tmp_path, text, "--columns", columns, "--time-unit", "us") == TWO
    assert imported(tmp_path, gzip.compress(text.encode()), "--columns", columns,
                    "--time-unit", "us") == TWO  # fmt: skip


def test_units_of_addresses_and_sizes(tmp_path: Path) -> None:
    found = imported(
        tmp_path, "0,R,3,2\n1,W,4,1\n", "--columns", ORDER, "--time-unit", "s",
        "--offset-unit", "4k", "--size-unit", "sector",
    )  # fmt: skip
    assert found == [(0, 12288, 1024, 0, 0), (10**9, 16384, 512, 1, 0)]


def test_volumes_are_laid_after_each_other_and_streams_are_not(tmp_path: Path) -> None:
    text = "0,R,0,512,3\n1,W,512,512,7\n"
    volumes = imported(tmp_path, text, "--columns", f"{ORDER},volume", "--time-unit", "us")
    assert [(row[1], row[4]) for row in volumes] == [(0, 3), ((1 << 20) + 512, 7)]
    streams = imported(tmp_path, text, "--columns", f"{ORDER},stream", "--time-unit", "us")
    assert [(row[1], row[4]) for row in streams] == [(0, 3), (512, 7)]


def test_streams_and_volumes_are_not_joined(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0,0,4096,R,0.5\n")
    (tmp_path / "b").write_text("time_ns,op,offset,size,stream,flags\n0,read,0,512,3,\n")
    result = run("import", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "o")
    assert "import each by itself" in str(result.exception)
    assert not (tmp_path / "o").exists()


def test_only_lines_of_one_disk(tmp_path: Path) -> None:
    text = "time,disk,op,offset,size\n0,sda,R,0,512\n1,sdb,X,no,no\n2,sda,W,512,512\n"
    found = imported(tmp_path, text, "--columns", ORDER, "--time-unit", "us", "--only", "disk=sda")
    assert [row[0] for row in found] == [0, 2000]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**17),
            st.integers(0, 1 << 40),
            st.integers(1, 1 << 20),
            st.sampled_from([("R", 0), ("write", 1), ("DISCARD", 2), ("t", 2), ("w", 1)]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(sorted(SEPARATORS)),
    st.sampled_from(sorted(TIME_UNITS)),
    st.booleans(),
)
@SLOW
def test_any_table_comes_back_to_the_nanosecond(
    tmp_path: Path,
    rows: list[tuple[int, int, int, tuple[str, int]]],
    separator: str,
    unit: str,
    header: bool,
) -> None:
    """Also Unix seconds with nine decimals, which no float holds."""
    ns = TIME_UNITS[unit]
    digits = len(str(ns)) - 1
    char = SEPARATORS[separator]
    lines = [ORDER.replace(",", char)] if header else []
    for time, offset, size, (word, _) in rows:
        whole = f"{time // ns}" + (f".{time % ns:0{digits}}" if digits else "")
        lines.append(char.join([whole, word, str(offset), str(size)]))
    (tmp_path / "t").write_text("\n".join(lines))
    places, in_order = parse_columns(ORDER)
    import_trace([tmp_path / "t"], tmp_path / "o", columns=Columns(places, in_order, time_ns=ns))
    begin = min(row[0] for row in rows)
    made = [(time - begin, offset, size, op, 0) for time, offset, size, (_, op) in rows]
    assert held(tmp_path / "o") == sorted(made, key=lambda row: row[0])


@given(raw=st.binary(min_size=1, max_size=200))
@SLOW
def test_any_bytes_are_imported_or_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "t").write_bytes(b"1,R,0,512\n" + raw)
    places, in_order = parse_columns(ORDER)
    try:
        import_trace([tmp_path / "t"], tmp_path / "o", columns=Columns(places, in_order))
    except UserError as error:
        assert "\n" not in str(error)
        assert str(tmp_path / "t") in str(error)


GOOD = "10,R,4096,512\n"
WRONG: dict[str, tuple[str | bytes, str]] = {
    "an operation that means two things": (f"{GOOD}11,1,0,512\n", ":2: unknown operation '1'"),
    "an unknown operation": (f"{GOOD}{GOOD}11,X,0,512\n", ":3: unknown operation 'X'"),
    "a negative time": (f"{GOOD}-1,R,0,512\n", ":2: the time is '-1'"),
    "a time with an exponent": (f"{GOOD}1e9,R,0,512\n", ":2: the time is '1e9'"),
    "a date": (f"{GOOD}2024-01-01 00:00,R,0,512\n", ":2: the time is '2024-01-01 00:00'"),
    "a hexadecimal address": (f"{GOOD}11,R,0x10,512\n", ":2: the offset is '0x10'"),
    "a fraction of a byte": (f"{GOOD}11,R,0,1.5\n", ":2: the size is '1.5'"),
    "no size": (f"{GOOD}11,R,0,\n", ":2: the size is ''"),
    "a column less": (f"{GOOD}11,R,0\n", ":2: 3 columns, not 4"),
    "a column more": (f"{GOOD}11,R,0,512,1\n", ":2: 5 columns, not 4"),
    "columns that have no name": ("10,R,4096,512,9\n", ":1: 5 columns, of which --columns names 4"),
    "other names": ("ts,op,offset,size\n10,R,4096,512\n", ":1: no column is called time"),
    "two separators": ("10;5,R,4096,512\n", ":1: comma or semicolon may be the separator"),
    "no table": ("hello\n", ":1: columns: 1, where 4 are needed"),
    "UTF-16": ("\ufefft".encode("utf-16-le"), ":1: UTF-16 text"),
    "a blank first line": (f"\n{GOOD}", ":1: the first line is blank"),
    "a name twice": ("time,op,offset,size,time\n1,R,0,512,2\n", ":1: 2 columns are called time"),
    "lines that end in CR alone": (
        "10,R,0,512\r11,R,0,512\r",
        ":1: malformed first line of a table",
    ),
    "a first line without end": (
        f"{'x' * 200_000},R,0,512\n",
        ":1: malformed first line of a table",
    ),
    "half a header": ("10,op,offset,size\n10,R,0,512\n", ":1: neither a request nor the names"),
    "a header alone": (f"{ORDER}\n", ": has no requests"),
    "a quote that does not end": (f'{GOOD}"11,R,0,512\n', ":2: not a line of a table"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, what: str) -> None:
    text, told = WRONG[what]
    error = refused(tmp_path, text, "--columns", ORDER, "--time-unit", "us")
    assert error.startswith(f"{tmp_path / 't.csv'}{told}")


def test_digits_are_operations_once_said(tmp_path: Path) -> None:
    found = imported(
        tmp_path, "0,0,0,512\n1,1,0,512\n2,DATA_OUT,0,512\n", "--columns", ORDER,
        "--time-unit", "us", "--ops", "1=read,0=write,data_out=write",
    )  # fmt: skip
    assert [row[3] for row in found] == [1, 0, 1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--columns", ORDER), "no unit of times given"),
        (("--columns", "time,op,offset", "--time-unit", "s"), "size is missing"),
        (("--columns", "time,time,op,offset,size", "--time-unit", "s"), "time is named twice"),
        (("--columns", f"{ORDER},lba", "--time-unit", "s"), "lba is not a column"),
        (("--columns", "time=1,op=2,offset=3,size=", "--time-unit", "s"), "size is not a column"),
        (
            ("--columns", "time=1,op=1,offset=3,size=4", "--time-unit", "s"),
            "two roles of --columns",
        ),
        (("--columns", "time=9,op=1,offset=3,size=4", "--time-unit", "s"), "no column 9"),
        (("--columns", f"time={'9' * 5000},op=1,offset=3,size=4", "--time-unit", "s"), "no column"),
        (("--columns", f"{ORDER},volume,stream", "--time-unit", "s"), "a volume or of a stream"),
        (("--columns", ORDER, "--time-unit", "s", "--format", "spc"), "fixed columns"),
        (("--columns", ORDER, "--time-unit", "s", "--offset-unit", "x"), "--offset-unit x"),
        (("--columns", ORDER, "--time-unit", "s", "--size-unit", "0"), "--size-unit 0"),
        (("--columns", ORDER, "--time-unit", "s", "--ops", "1"), "--ops 1"),
        (("--columns", ORDER, "--time-unit", "s", "--ops", "1=move"), "--ops 1=move"),
        (("--columns", ORDER, "--time-unit", "s", "--only", "disk"), "--only disk"),
        (("--only", "disk=1"), "--only needs --columns"),
        (("--format", "csv"), "differ from those of isoblk's exports"),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    assert told in refused(tmp_path, GOOD, *words)


def test_the_table_is_never_overwritten(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    source.write_text(GOOD)
    words = ("--columns", ORDER, "--time-unit", "us", "--force")
    result = run("import", source, "-o", source, *words)
    assert "is the input itself" in str(result.exception)
    assert source.read_text() == GOOD


def test_times_in_another_unit_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("".join(f"{i * 10**7},R,0,512\n" for i in range(100)))
    words = ("--columns", ORDER, "--time-unit", "s")
    assert "another unit?" in run("import", tmp_path / "t.csv", "-o", tmp_path / "o", *words).stderr


def test_spellings_and_units() -> None:
    assert parse_ops("0=read, W0 = write") == {"0": 0, "w0": 1}
    assert [unit_bytes("--size-unit", word) for word in ("byte", "sector", "4k")] == [1, 512, 4096]
