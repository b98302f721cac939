# SPDX-License-Identifier: GPL-2.0-only
"""Nothing in a study becomes shell: text of other authors is a single word of the script, on every
machine, or is refused in one line."""

import re
import shutil
import subprocess
import tomllib
import types
import typing
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoblk.cli import main as cli
from isoblk.errors import IsoblkError, UserError
from isoblk.plan.plan import make_plan
from isoblk.run import shell
from isoblk.run.shell import ForDevice, Here, Quoted, fill, render, run, write
from isoblk.run.spec import HostDevice, RunSpec
from isoblk.run.tier import HOST, QEMU, UML, Tier
from isoblk.study.expand import expand, resolve
from isoblk.study.load import parse_study
from isoblk.study.model import Study
from isoblk.study.onhost import on_host
from isoblk.study.text import Source
from tests.examples import at_most
from tests.unit.shellwords import Token, tokens

TIERS = (UML, QEMU, HOST)
SHELLS = [
    command for name in ("dash", "bash", "busybox") if (command := shutil.which(name)) is not None
]
NASTY = (
    *("$(id)", "`id`", "${IFS}", "$dev $(id)", "$dev", '"', "'", "''", "\\", "\\'", '\\"$(id)'),
    *(
        "a b",
        " ",
        "a\tb",
        "a\nid",
        "a\rb",
        "\0",
        "\x1b[2J",
        "a;id",
        "a&id",
        "a|id",
        "a&&id",
        "(id)",
    ),
    *("{id;}", "{a,b}", "*", "?", "[a]", "~", "~root", "#", "a #b", "!", "!!", "^a^b", "=", "a=b"),
    *("-n", "-e", "--", "--help", "-rf", "..", ".", "../x", "../../../etc/shadow", "/etc/passwd"),
    *("> /x", "2>&1", "<<EOF", "EOF", "\\c", "%s", "\u2028", "\u202e", "\ud7ff", "ü", "\U0001f600"),
    *("a" * 5000, "</script><script>", "[red]x[/]", "[/]", "{metric}", "if", "done", "x\\"),
)
HOSTILE = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.sampled_from("ab1 /.-=,:;&|<>()[]{}*?!~#%^@\\$`\"'\n\t\0\x1b\x7f"), max_size=12),
    st.text(max_size=20),
    st.tuples(st.sampled_from(("a", "4k", "$dev ", "none", "")), st.sampled_from(NASTY)).map(
        "".join
    ),
)
EVERY = settings(max_examples=at_most(60), suppress_health_check=[HealthCheck.too_slow])

LAB = """
name = "all"
title = "t"
description = "d"
device = { driver = "vdisk", model = "fixed", store = "memory", read_ns = "20us" }
queue = { read_ahead_kb = "128", nr_requests = 64 }
iosched = { bfq = { low_latency = "0" }, kyber-fair = { refill_ms = 50 } }
io_cost = { qos = { min = 90, ctrl = "user" } }
io_latency = { target = "100us" }
scale = 2
[run]
warmup = "100ms"
runtime = "500ms"
window = "100ms"
[workload]
workload = "blkload"
bs = "4k"
ioprio = "none"
[[tenant]]
name = "web"
weight = [300]
cgroup = "apps/web"
count = 2
offset = "0"
offset_increment = "1m"
size = "1m"
rw = "randrw"
bsrange = "4k-8k"
random_distribution = "zipf:1.2"
rate_iops = 100
rate_process = "poisson"
thinktime = "10us"
cputime = "512ns"
[[tenant]]
name = "mail"
trace = "exchange"
replay = "timed"
trace_fit = "wrap"
[[tenant]]
name = "split"
bssplit = "4k/60:64k/40"
startdelay = "10ms"
runtime = "200ms"
[[group]]
path = "apps"
weight = 200
[[event]]
at = "200ms"
tenant = "split"
weight = 50
[[event]]
at = "300ms"
device = { read_ns = "30us" }
[matrix]
scheduler = ["bfq", "kyber-fair", "io.cost"]
"queue.nomerges" = ["2"]
[[claim]]
text = "c"
source = "s"
metric = "share_error"
op = "<"
value = 0.1
why = "w"
among = []
where = { scheduler = "bfq" }
than = { scheduler = "kyber-fair" }
[compare]
title = "t"
source = "s"
metric = "total_bps"
x = "scheduler"
[[compare.series]]
text = "t"
where = { scheduler = "bfq" }
values = [1, 2, 3]
"""
LIMITS = """
name = "limits"
device = "fast"
[[tenant]]
name = "web"
[matrix]
scheduler = ["io.latency", "io.max"]
"""
FILES = """
name = "files"
device = { driver = "vdisk", store = "memory", size = "1g" }
[run]
runtime = "1s"
cgroup = "v1"
[filesystem]
type = "ext4"
offset = "0"
size = "512m"
mkfs = ["-O", "^has_journal"]
mount = "noatime"
[[tenant]]
name = "db"
workload = "db_bench"
options = { benchmarks = "readrandom", num = 1000, compression_type = "none" }
[[tenant]]
name = "copy"
workload = "dd"
options = { count = 3, bs = "1m", flag = "direct" }
[[tenant]]
name = "oltp"
workload = "sysbench"
options = { mode = "rndrw", size = "16m" }
[[tenant]]
name = "zone"
workload = "iozone"
options = { record = "64k", size = "1m", tests = ["write"] }
[[tenant]]
name = "java"
workload = "ycsb"
options = { workload = "a", cache = "32m" }
[[tenant]]
name = "raw"
workload = "fio"
rw = "randread"
bs = "4k"
[matrix]
"tenant.db.options.compression_type" = ["none"]
"filesystem.mount" = ["noatime"]
"""
CACHED = """
name = "cached"
cache = "setcache"
device = { driver = "vdisk", store = "memory", size = "1g" }
ssd = { driver = "vdisk", store = "memory", size = "512m" }
[caching]
origin = "512m"
ssd = "256m"
files = "origin"
passes = 2
placement = "scattered"
working_set = "64m"
piece = "2m"
[caches.setcache]
mode = "writeback"
[caches.bcache]
bucket = "64k"
mode = "writeback"
[caches.dm-cache]
policy = "smq"
[filesystem]
mkfs = ["-b", "4096"]
[[tenant]]
name = "a"
workload = "dd"
options = { count = 3, bs = "1m" }
[matrix]
cache = ["setcache", "bcache", "dm-cache"]
"""
RUNNING = """
name = "running"
device = "fast"
[run]
runtime = "1s"
[[tenant]]
name = "web"
workload = "running"
cgroup = "/system.slice/web.service"
[[tenant]]
name = "probe"
rw = "randread"
[[group]]
path = "/system.slice"
weight = 200
[matrix]
scheduler = ["bfq"]
"""
STUDIES = {"lab": LAB, "limits": LIMITS, "files": FILES, "cached": CACHED, "running": RUNNING}


# ---- every string field --------------------------------------------------------------

Place = tuple[str | int, ...]
_KEY = "\0key"  # as the last part of a place: the key itself
_NEW = "other"  # a key that the document does not have


def _texts(kind: Any, document: Any, place: Place = ()) -> Iterator[Place]:
    """Where in a document of a type text may stand, whether it does or not. document: an example
    of one, whose keys are taken where any may be."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is str or origin is typing.Literal:
        yield place
    elif origin in (typing.Union, types.UnionType):
        for one in args:
            yield from _texts(one, document, place)
    elif origin in (list, tuple):
        items: list[Any] = document if isinstance(document, list) and document else [None]
        for index, item in enumerate(items):
            yield from _texts(args[0], item, (*place, index))
    elif origin is dict:
        held: dict[str, Any] = document if isinstance(document, dict) else {}
        yield (*place, _KEY)
        for key in (*held, _NEW):
            yield from _texts(args[1], held.get(key), (*place, key))
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        table: dict[str, Any] = document if isinstance(document, dict) else {}
        later = bool(place) and isinstance(place[-1], int) and place[-1] > 0
        for name, hint in typing.get_type_hints(kind).items():
            # Of several tenants the later ones have what the first has not.
            if not later or name in table:
                yield from _texts(hint, table.get(name), (*place, name))


def _with(document: Any, place: Place, text: str) -> Any:
    """The document with a text there."""
    first, *rest = place
    if isinstance(first, int):
        items: list[Any] = document if isinstance(document, list) and document else [None]
        inner = _with(items[first], tuple(rest), text) if rest else text
        return [*items[:first], inner, *items[first + 1 :]]
    held: dict[str, Any] = dict(document) if isinstance(document, dict) else {}
    if first == _KEY:
        value = held.pop(next(iter(held))) if held else 1
        return {**held, text: value}
    return {**held, first: _with(held.get(first), tuple(rest), text) if rest else text}


def _toml(value: Any) -> str:
    """The value as TOML, all of it inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(_escaped(c) for c in value) + '"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _escaped(c: str) -> str:
    return c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}"


def _document(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


DOCUMENTS = {name: _document(text) for name, text in STUDIES.items()}
_A_PLACE = 2  # of the nasty texts; the next place has the next ones


def _held(document: Any, place: Place) -> bool:
    for part in place:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _places() -> list[tuple[str, Place]]:
    """Each place, in every example that has something there, or in the first."""
    found: dict[Place, list[str]] = {}
    for name, document in DOCUMENTS.items():
        for place in dict.fromkeys(_texts(Study, document)):
            if place not in found or _held(document, place):
                found.setdefault(place, []).append(name)
    return [(name, place) for place, names in found.items() for name in names]


PLACES = _places()


def _studies(text: str) -> Iterator[tuple[Study, Tier]]:
    """The study in each machine's words. Raises UserError: it is refused."""
    study = parse_study(text, "s.toml")
    running = any(entry.workload == "running" for entry in study.tenant)
    if not running:
        yield study, UML
        yield study, QEMU
    simple = msgspec.structs.replace(
        study,
        event=[event for event in study.event if not event.device],
        ssd=None,
        caches={},
        cache="none",
        matrix={
            key: v for key, v in study.matrix.items() if "device" not in key and key != "cache"
        },
        tenant=[entry for entry in study.tenant if not entry.trace],
        compare=None,
    )
    if simple.tenant and study.ssd is None:
        device = HostDevice(name="loop", what="a disk", size=8 << 30)
        elevators = ["none", "bfq", "kyber", "mq-deadline", "kyber-fair", "feedbac", "cfq"]
        adapted, _ = on_host(simple, Source.of("s", text), device, study.run.cgroup, elevators)
        yield adapted, HOST


def _specs(study: Study) -> Iterator[RunSpec]:
    for planned in expand(study).runs:
        spec = planned.spec
        if spec.scheduler.name == "io.cost" and spec.scheduler.io_cost_model is None:
            names = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
            spec = resolve(spec, dict.fromkeys(names, 1), None)
        if spec.scheduler.name == "io.max":
            spec = resolve(spec, None, (1, 1))
        yield spec


# ---- single words --------------------------------------------------------------------


_MARK = re.compile(r"QX(\d+)XQ")
_QUOTE = shell.quote


class _Words:
    """In place of the one function that quotes: a mark for each literal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        monkeypatch.setattr(shell, "quote", self._mark)
        monkeypatch.setattr(shell, "_in_double_quotes", self._mark)

    def _mark(self, text: str) -> str:
        self.texts.append(text)
        return f"QX{len(self.texts) - 1}XQ"

    def filled_in(self, marked: Sequence[Token]) -> list[Token]:
        """The tokens with the literals in place of their marks."""
        return [
            token
            if isinstance(token, str)
            else tuple((kind, self._text(text)) for kind, text in token)
            for token in marked
        ]

    def _text(self, text: str) -> str:
        return _MARK.sub(lambda mark: self._whole(int(mark[1])), text)

    def _whole(self, number: int) -> str:
        """The literal, which may be a script of its own, with literals in it."""
        return _MARK.sub(lambda mark: _QUOTE(self._whole(int(mark[1]))), self.texts[number])


def _without_empty(found: Sequence[Token]) -> list[Token]:
    """Chunks as what they are, next to each other: nothing of how they were quoted."""
    return [
        token if isinstance(token, str) else tuple((kind, text) for kind, text in token if text)
        for token in found
    ]


def assert_single_words(spec: RunSpec, tier: Tier) -> None:
    """Every literal of the run's script is in a single word, and nothing of it is shell."""
    script = make_plan(spec, tier).text
    with pytest.MonkeyPatch.context() as monkeypatch:
        words = _Words(monkeypatch)
        marked = make_plan(spec, tier).text
    expected = words.filled_in(tokens(marked))
    assert _without_empty(tokens(script)) == _without_empty(expected)
    _assert_as_the_shell_reads(words.texts)


def _assert_as_the_shell_reads(texts: Sequence[str]) -> None:
    special = [text for text in dict.fromkeys(texts) if shell.quote(text) != text]
    for command in SHELLS if special else ():
        name = [command, "sh"] if command.endswith("busybox") else [command]
        script = "printf '%s\\0' " + " ".join(map(shell.quote, special))
        said = subprocess.run([*name, "-c", script], capture_output=True, check=True)
        assert said.stdout.decode() == "".join(f"{text}\0" for text in special)


def _assert_harmless(text: str) -> None:
    try:
        found = [(spec, tier) for study, tier in _studies(text) for spec in _specs(study)]
    except IsoblkError as error:
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in str(error))
        return
    for spec, tier in found:
        assert_single_words(spec, tier)


@pytest.mark.parametrize("name", STUDIES)
def test_the_examples_are_studies_that_can_run(name: str) -> None:
    found = [(spec, tier) for study, tier in _studies(STUDIES[name]) for spec in _specs(study)]
    assert {tier.name for _, tier in found} >= ({"host"} if name != "cached" else {"uml", "qemu"})
    for spec, tier in found:
        assert_single_words(spec, tier)


@pytest.mark.parametrize(("name", "place"), PLACES, ids=str)
def test_a_text_of_a_study_is_refused_or_a_single_word(name: str, place: Place) -> None:
    first = PLACES.index((name, place)) * _A_PLACE
    for index in range(first, first + _A_PLACE):
        _assert_harmless(_document_with(name, place, NASTY[index % len(NASTY)]))


@EVERY
@given(st.sampled_from(PLACES), HOSTILE)
def test_any_text_of_a_study_is_refused_or_a_single_word(
    at: tuple[str, Place], hostile: str
) -> None:
    _assert_harmless(_document_with(*at, hostile))


def _document_with(name: str, place: Place, text: str) -> str:
    document = _with(DOCUMENTS[name], place, text)
    return "\n".join(f"{_toml(str(key))} = {_toml(value)}" for key, value in document.items())


# ---- without the checks of studies -----------------------------------------------------


RUNS = [
    (spec, tier)
    for text in STUDIES.values()
    for study, tier in _studies(text)
    for spec in list(_specs(study))[-2:]
]


@EVERY
@given(st.sampled_from(RUNS), st.data())
def test_any_text_of_a_run_is_a_single_word_even_if_no_check_has_seen_it(
    at: tuple[RunSpec, Tier], data: st.DataObject
) -> None:
    spec, tier = at
    document = msgspec.to_builtins(spec)
    places = [one for one in dict.fromkeys(_texts(RunSpec, document)) if _held(document, one)]
    place = data.draw(st.sampled_from(places))
    changed = _with(document, place, data.draw(HOSTILE))
    try:
        hostile = msgspec.convert(changed, RunSpec)
        make_plan(hostile, tier)
    except (ValueError, KeyError):
        return  # no such word, no such tenant, or a text that is no line
    assert_single_words(hostile, tier)


# ---- the words themselves --------------------------------------------------------------


class _Some(shell.Form):
    SAY = "for i in 1; do printf '%s' {what}; done"


@EVERY
@given(st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" ")))
def test_the_shell_reads_a_literal_unchanged(text: str) -> None:
    for command in SHELLS:
        name = [command, "sh"] if command.endswith("busybox") else [command]
        for script in (
            render([run("printf", "%s", text)]),
            render([run("printf", "%s", Quoted(text))]),
            render([fill(_Some.SAY, what=text)]),
        ):
            said = subprocess.run([*name, "-c", script], capture_output=True, check=True)
            assert said.stdout.decode() == text


@pytest.mark.parametrize(
    "text", ["-n", "-e x", "-neE", "a\\c b", "\\x41", "\\0101", "-1", "", "%s"]
)
def test_a_line_is_written_as_it_is(text: str, tmp_path: Path) -> None:
    for command in SHELLS:
        name = [command, "sh"] if command.endswith("busybox") else [command]
        script = render([write(text, str(tmp_path / "file"))])
        subprocess.run([*name, "-c", script], check=True)
        assert (tmp_path / "file").read_text() == f"{text}\n"


@pytest.mark.parametrize("line", ["$(id)", "`id`", "\\", "a b", "EOF ", "<<EOF", "'", '"'])
def test_a_line_of_a_here_document_is_read_as_it_is(line: str) -> None:
    script = render([Here(run("cat"), (line, "next"))])
    for command in SHELLS:
        name = [command, "sh"] if command.endswith("busybox") else [command]
        said = subprocess.run([*name, "-c", script], capture_output=True, check=True)
        assert said.stdout.decode() == f"{line}\nnext\n"


def test_a_plain_text_cannot_become_a_command() -> None:
    with pytest.raises(TypeError, match="not a statement: 'id'"):
        render(["id"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="'id' is not a valid _Some"):
        _Some("id")
    for program in ("a b", "PATH=x", "if", "", "$x"):
        with pytest.raises(ValueError, match="not a program"):
            run(program)
    for text in ("a\nid", "\0", "\x1b[2J"):
        with pytest.raises(ValueError, match="not one line of printable text"):
            render([run("echo", text)])
    with pytest.raises(ValueError, match="ends the document"):
        Here(run("cat"), ("EOF", "id"))


@pytest.mark.parametrize("form", [m for k in shell.Form.__subclasses__() for m in k], ids=str)
def test_a_hole_stands_outside_of_quotes(form: shell.Form) -> None:
    marked = re.sub(r"(?<!\$)\{([a-z]+)\}", "QX0XQ", form.value)
    quoted = re.sub(r"(?<!\$)\{([a-z]+)\}", "'QX 0'", form.value)
    replaced = [
        token
        if isinstance(token, str)
        else tuple((kind, text.replace("QX0XQ", "QX 0")) for kind, text in token)
        for token in tokens(marked)
    ]
    assert tokens(quoted) == replaced


# ---- past findings ----------------------------------------------------------------------


@pytest.mark.parametrize("machine", ["uml", "qemu", "host"])
@pytest.mark.parametrize("table", ["[queue]\nread_ahead_kb", "[iosched.bfq]\nslice_idle"])
def test_a_knob_does_not_run_a_command(
    machine: str,
    table: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, touched = tmp_path / "s.toml", tmp_path / "touched"
    study.write_text(
        f"name = 's'\ndevice = 'fast'\nscheduler = 'bfq'\n[[tenant]]\nname = 't'\nrw = 'read'\n"
        f"{table} = '$dev $(touch {touched})'\n"
    )
    target = ["--loop", "16m"] if machine == "host" else []
    for arguments in (
        ["study", "check", str(study)],
        ["run", str(study), "--machine", machine, "--dry-run", *target],
    ):
        monkeypatch.setattr("sys.argv", ["isoblk", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 2
        assert capsys.readouterr().err.count("is not a value of a setting") == 1
    assert not touched.exists()


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.name)
def test_a_value_that_looks_like_a_line_for_a_device_is_a_literal(
    tier: Tier, tmp_path: Path
) -> None:
    value = f"$dev $(touch {tmp_path}/touched)"
    (spec,) = [one for one, of in RUNS if of is tier][:1]
    spec = msgspec.structs.replace(spec, queue={"read_ahead_kb": value})
    script = make_plan(spec, tier).text
    (line,) = [one for one in script.splitlines() if one.endswith("queue/read_ahead_kb")][:1] or [
        ""
    ]
    written = line.partition(" > ")[0]
    assert written == f"echo '{value}'"
    said = subprocess.run(["sh", "-c", written], capture_output=True, check=True, text=True)
    assert said.stdout == f"{value}\n"
    assert not (tmp_path / "touched").exists()


def test_a_line_for_a_device_goes_to_no_other_file() -> None:
    with pytest.raises(ValueError, match="no line for a device"):
        write(ForDevice("$(id)"), "/sys/block/sda/queue/read_ahead_kb")
    line = render([write(ForDevice('rbps=1 $(id) `id` "'), "/cg/io.max")])
    assert line == 'echo "$dev rbps=1 \\$(id) \\`id\\` \\"" > /cg/io.max'


@pytest.mark.parametrize(
    ("where", "value", "cause"),
    [
        ("filesystem.mkfs", '["/dev/sda"]', "is not an option of mkfs.ext4"),
        ("filesystem.mkfs", '["-d", "/etc"]', "is not an option of mkfs.ext4"),
        ("filesystem.mkfs", '["-z", "/x"]', "is not an option of mkfs.ext4"),
        ("filesystem.mkfs", '["-l", "/etc/shadow"]', "is not an option of mkfs.ext4"),
        ("filesystem.mkfs", '["-J", "device=/dev/sda"]', "is not an argument of -J"),
        ("filesystem.mkfs", '["-b"]', "nothing is not an argument of -b"),
        ("filesystem.mount", '"loop"', "is not an option of mount"),
        ("filesystem.mount", '"noatime,journal_path=/dev/sda"', "is not an option of mount"),
        ("filesystem.mount", '"helper=x"', "is not an option of mount"),
        ("filesystem.mount", '"errors=panic"', "is not an option of mount"),
        ("filesystem.mount", '"data=/etc"', "is not an option of mount"),
        *(
            ("tenant.db.options." + name, value, cause)
            for name, value, cause in (
                ("env_uri", '"posix://x"', "takes a number"),
                ("fs_uri", '"x"', "takes a number"),
                ("flagfile", '"/etc/shadow"', "takes a number"),
                ("report_file", '"/etc/cron.d/x"', "takes a number"),
                ("trace_file", '"x"', "takes a number"),
                ("options_file", '"../x"', "takes a number"),
                ("backup_dir", '"/"', "takes a number"),
                ("secondary_cache_uri", '"x"', "takes a number"),
                ("wal_dir", '"/"', "set by the run itself"),
                ("db", '"/"', "set by the run itself"),
                ("use_secondary_db", "true", "outside of the run's"),
                ("compression_type", '"/x"', "is not a word"),
                ("benchmarks", '"fillseq,replay"', "not an allowed benchmark"),
                ("load", '"verify"', "not an allowed benchmark"),
            )
        ),
    ],
)
def test_an_option_that_names_a_file_is_refused(where: str, value: str, cause: str) -> None:
    at: Place = tuple(where.split("."))
    document = _document(FILES)
    if at[0] == "tenant":
        document["tenant"][0]["options"] |= {at[-1]: _document(f"x = {value}")["x"]}
    else:
        document["filesystem"] |= {at[-1]: _document(f"x = {value}")["x"]}
    del document["matrix"]
    text = "\n".join(f"{key} = {_toml(inner)}" for key, inner in document.items())
    with pytest.raises(UserError, match=re.escape(cause)):
        parse_study(text, "s.toml")


def test_xfs_has_options_of_its_own() -> None:
    text = FILES.replace('"ext4"', '"xfs"')
    parse_study(
        text.replace('["-O", "^has_journal"]', '["-d", "agcount=4", "-l", "size=64m"]'), "s"
    )
    for bad in ('["-l", "logdev=/dev/sda"]', '["-d", "file,name=/x"]', '["-p", "/etc/x"]'):
        with pytest.raises(UserError, match=r"filesystem\.mkfs"):
            parse_study(text.replace('["-O", "^has_journal"]', bad), "s")


@pytest.mark.parametrize("field", ["name", "title", "matrix"])
def test_a_study_says_nothing_to_a_terminal(field: str) -> None:
    text = {
        "name": LIMITS.replace('"limits"', '"a\\u001b[2J"'),
        "title": f'title = "\\u009b2J"{LIMITS}',
        "matrix": f'{LIMITS}"queue.\\u202e" = [1]',
    }[field]
    with pytest.raises(UserError, match="is not printed") as caught:
        parse_study(text, "s.toml")
    assert str(caught.value).isprintable()
    parse_study(f'description = """two\nlines"""{LIMITS}', "s.toml")


def test_a_matrix_names_no_disk_of_this_machine() -> None:
    device = 'device = { driver = "vdisk", name = "sda", what = "x", size = "1g" }'
    text = LIMITS.replace('device = "fast"', device) + '"device.driver" = ["host"]\n'
    with pytest.raises(UserError, match="is not named in a study"):
        parse_study(text, "s.toml")


def test_a_file_without_contents_is_not_read_as_a_trace() -> None:
    # Reading some of those that the kernel makes up would not end.
    text = LIMITS.replace('name = "web"', 'name = "web"\ntrace = "/proc/uptime"')
    with pytest.raises(UserError, match="the trace is empty"):
        parse_study(text, "s.toml")
