# SPDX-License-Identifier: GPL-2.0-only
"""Sources lists are read as apt reads them, and the fetch leaves the system's apt alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoblk.errors import RunError, UserError
from isoblk.kernel import apt
from isoblk.kernel.apt import Repo

ONE_LINE = """\
# deb http://commented.example/debian trixie main
deb http://mirror.example/debian trixie main contrib # trailing words
deb [arch=amd64,arm64 signed-by=/k.gpg] http://signed.example/debian trixie-updates main
deb-src http://mirror.example/debian trixie main
deb http://flat.example/packages ./
nonsense
"""

DEB822 = """\
# A comment before.
Types: deb deb-src
URIs: http://one.example/debian
 http://two.example/debian
Suites: trixie trixie-updates
# A comment inside.
Components: main
Signed-By: /k.gpg

Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb-src
URIs: http://src.example/debian
Suites: trixie
Components: main
\t
types: deb
uris: http://key.example/debian
suites: trixie
components: main
signed-by:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
"""


def test_one_line_style_keeps_binary_repositories_and_their_options() -> None:
    first, second = apt.parse_list(ONE_LINE)
    assert first == Repo(("http://mirror.example/debian",), ("trixie",), ("main", "contrib"), {})
    assert second.suites == ("trixie-updates",)
    assert second.options == {"architectures": "amd64 arm64", "signed-by": "/k.gpg"}


def test_deb822_style_skips_disabled_and_source_only_stanzas() -> None:
    first, second = apt.parse_deb822(DEB822)
    assert first.uris == ("http://one.example/debian", "http://two.example/debian")
    assert first.suites == ("trixie", "trixie-updates")
    assert first.options == {"signed-by": "/k.gpg"}
    assert second.uris == ("http://key.example/debian",)


def test_embedded_key_survives_into_the_private_stanza() -> None:
    repo = apt.parse_deb822(DEB822)[1]
    assert apt.parse_deb822(repo.stanza()) == [repo]
    assert "\n .\n abc" in repo.stanza()


word = st.from_regex(r"[a-z][a-z0-9./-]{0,12}", fullmatch=True)


@given(
    uris=st.lists(word.map("http://{}".format), min_size=1, max_size=3),
    suites=st.lists(word, min_size=1, max_size=3),
    components=st.lists(word, min_size=1, max_size=3),
    key=st.none() | word,
)
def test_stanza_round_trips(
    uris: list[str], suites: list[str], components: list[str], key: str | None
) -> None:
    options = {"signed-by": key} if key else {}
    repo = Repo(tuple(uris), tuple(suites), tuple(components), options)
    assert apt.parse_deb822(repo.stanza()) == [repo]


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    for repo in apt.parse_list(text) + apt.parse_deb822(text):
        assert repo.uris
        assert repo.components


def test_both_places_and_both_styles_are_read(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text("deb http://a.example/debian trixie main\n")
    (parts / "b.list").write_text("deb http://b.example/debian trixie main\n")
    (parts / "c.sources").write_text(DEB822)
    (parts / "d.list.save").write_text("deb http://d.example/debian trixie main\n")
    repos = apt.read_repos(tmp_path / "sources.list", parts)
    assert [repo.uris[0] for repo in repos] == [
        "http://a.example/debian",
        "http://b.example/debian",
        "http://one.example/debian",
        "http://key.example/debian",
    ]


def test_other_peoples_repositories_are_not_taken_for_debian() -> None:
    repos = apt.parse_list(
        "deb http://m.example/debian trixie main contrib\n"
        "deb http://s.example/security trixie-security main\n"
        "deb http://cloud.example/apt cloud-sdk main\n"
        "deb http://docker.example/debian trixie stable\n"
    )
    chosen = apt.debian_repos(repos, "trixie")
    assert [(repo.uris[0], repo.components) for repo in chosen] == [
        ("http://m.example/debian", ("main",)),
        ("http://s.example/security", ("main",)),
    ]


def test_another_suite_is_asked_of_the_mirror_and_must_be_signed_by_debian() -> None:
    repos = apt.parse_list(
        "deb [trusted=yes] http://m.example/debian trixie main\n"
        "deb http://m.example/debian/ trixie-updates main\n"
        "deb http://s.example/security trixie-security main\n"
    )
    (mirror,) = apt.mirrors_with_suite(repos, "forky", Path("/debian.gpg"))
    assert mirror.uris == ("http://m.example/debian",)
    assert mirror.suites == ("forky",)
    assert mirror.options == {"signed-by": "/debian.gpg"}


def test_newest_source_compares_numbers() -> None:
    names = ["linux-source-6.9", "linux-source-6.12", "linux-source", "linux-source-6.12-rt"]
    assert apt.newest_source(names) == "linux-source-6.12"
    assert apt.newest_source(["linux-source"]) is None


# Plays apt-get, apt-cache and apt-config. Packages are listed in FAKE/system and, for a private
# state, in FAKE/SUITE; every call is written to FAKE/calls.
FAKE_APT = """\
#!/bin/sh
fake=$(dirname "$0")
name=$(basename "$0")
echo "$name $*" >> "$fake/calls"
if [ "$name" = apt-config ]; then
    echo "L='$fake/sources.list'"; echo "P='$fake/parts/'"; exit
fi
lists=$fake/system
if [ "$1" = -c ]; then
    sources=$(sed -n 's/^Dir::Etc::sourcelist "\\(.*\\)";/\\1/p' "$2")
    lists=$fake/$(sed -n 's/^Suites: *//p' "$sources" | head -n 1)
    shift 2
fi
[ "$1" = -o ] && shift 2
[ "$1" = -q ] && shift
case $1 in
policy) echo "$2:"; echo "  Candidate: $(sed -n "s/^$2 //p" "$lists" 2>/dev/null)" ;;
pkgnames) cut -d ' ' -f 1 "$lists" ;;
download)
    if [ -e "$fake/stale" ] && [ "$lists" = "$fake/system" ]; then
        echo "E: Failed to fetch: 404" >&2; exit 100
    fi
    echo deb > "${2%%=*}_${2#*=}_amd64.deb" ;;
update) [ ! -e "$fake/offline" ] || { echo "E: no network" >&2; exit 100; } ;;
esac
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "bin"
    (directory / "parts").mkdir(parents=True)
    for name in ("apt-get", "apt-cache", "apt-config"):
        (directory / name).write_text(FAKE_APT)
        (directory / name).chmod(0o755)
    (directory / "sources.list").write_text("deb http://m.example/debian stable main\n")
    keyring = tmp_path / "keyring.gpg"
    keyring.touch()
    monkeypatch.setattr(apt, "_KEYRINGS", (keyring,))
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    (tmp_path / "work" / "deb").mkdir(parents=True)
    return directory


def fetch(fake: Path, version: str | None, suite: str | None = None) -> apt.Deb:
    return apt.fetch(version, suite, fake.parent / "work" / "deb")


def test_package_known_to_the_system_needs_no_update(fake: Path) -> None:
    (fake / "system").write_text("linux-source-6.12 6.12.1-1\n")
    deb = fetch(fake, "6.12")
    assert (deb.package, deb.version) == ("linux-source-6.12", "6.12.1-1")
    assert " update" not in (fake / "calls").read_text()


@pytest.mark.parametrize("stale", [False, True])
def test_absent_or_outdated_lists_are_replaced_privately(fake: Path, stale: bool) -> None:
    if stale:
        (fake / "system").write_text("linux-source-6.12 6.12.1-1\n")
        (fake / "stale").touch()
    (fake / "stable").write_text("linux-source-6.12 6.12.2-1\n")
    assert fetch(fake, "6.12").version == "6.12.2-1"
    updates = [line for line in (fake / "calls").read_text().splitlines() if "update" in line]
    assert updates
    assert all(" -c " in line for line in updates)


def test_newer_kernel_comes_from_the_default_suite(fake: Path) -> None:
    (fake / "stable").write_text("linux-source-6.12 6.12.2-1\n")
    (fake / apt.DEFAULT_SUITE).write_text("linux-source-7.2 7.2.1-1\n")
    assert fetch(fake, "7.2").version == "7.2.1-1"


def test_newest_is_the_newest_of_the_suite(fake: Path) -> None:
    (fake / "system").write_text("linux-source-6.12 6.12.2-1\n")
    (fake / "sid").write_text("linux-source-7.2 7.2.1-1\nlinux-source-7.10 7.10.1-1\n")
    assert fetch(fake, None, "sid").package == "linux-source-7.10"


def test_unknown_version_is_the_users_error(fake: Path) -> None:
    (fake / "system").write_text("linux-source-6.12 6.12.2-1\n")
    with pytest.raises(UserError, match=r"no package linux-source-9\.9 .*--source"):
        fetch(fake, "9.9")


def test_no_network_is_told_in_apts_words(fake: Path) -> None:
    (fake / "offline").touch()
    with pytest.raises(RunError, match="no network"):
        fetch(fake, "7.2")


def test_private_state_is_removed(fake: Path) -> None:
    (fake / "sid").write_text("linux-source-7.2 7.2.1-1\n")
    fetch(fake, "7.2", "sid")
    assert [path.name for path in (fake.parent / "work").iterdir()] == ["deb"]


def test_the_release_with_the_default_kernel_is_looked_in_before_a_newer_one(fake: Path) -> None:
    (fake / "trixie").write_text("linux-source-6.12 6.12.3-1\n")
    assert fetch(fake, "6.12").version == "6.12.3-1"


UBUNTU = """\
NAME="Ubuntu"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
"""


@pytest.fixture
def ubuntu(fake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose apt knows another distribution's archive, and a browser's."""
    release = fake / "os-release"
    release.write_text(UBUNTU)
    monkeypatch.setattr(apt, "_OS_RELEASE", release)
    (fake / "sources.list").write_text(
        "deb http://archive.example/ubuntu noble main universe\n"
        "deb http://browser.example/deb stable main\n"
    )
    return fake


def test_another_distribution_takes_debians_archive(ubuntu: Path) -> None:
    # The package of that name in its own archive is not built.
    (ubuntu / "system").write_text("linux-source-6.12 6.12.0-9ubuntu1\n")
    (ubuntu / "trixie").write_text("linux-source-6.12 6.12.3-1\n")
    assert apt.mirrors() == apt.Mirrors(
        (Repo(("http://deb.debian.org/debian",), ("trixie",), ("main",)),), configured=False
    )
    assert fetch(ubuntu, "6.12").version == "6.12.3-1"
    calls = (ubuntu / "calls").read_text().splitlines()
    assert all(" -c " in line for line in calls)


def test_another_distribution_needs_debians_keys(
    ubuntu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert apt.lacking_packages() == []
    monkeypatch.setattr(apt, "_KEYRINGS", ())
    assert apt.lacking_packages() == ["debian-archive-keyring"]
    with pytest.raises(UserError, match="run: apt install debian-archive-keyring"):
        fetch(ubuntu, "6.12")


def test_a_derivative_of_debian_keeps_its_mirror(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = tmp_path / "os-release"
    release.write_text("ID=linuxmint\nVERSION_CODENAME=faye\nDEBIAN_CODENAME=bookworm\n")
    monkeypatch.setattr(apt, "_OS_RELEASE", release)
    (fake / "sources.list").write_text("deb http://m.example/debian bookworm main\n")
    assert apt.mirrors().configured
    release.unlink()
    assert not apt.mirrors().configured


def test_without_a_mirror_debians_archive_is_one(fake: Path) -> None:
    (fake / "sources.list").write_text("deb http://x.example/apt own main\n")
    (fake / apt.DEFAULT_SUITE).write_text("linux-source-7.2 7.2.1-1\n")
    assert fetch(fake, "7.2").version == "7.2.1-1"


def test_without_apt_the_ways_out_are_told(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake / "parts"))
    assert apt.lacking_packages() == []
    with pytest.raises(UserError, match=r"apt is not on this machine; install apt.*--source"):
        fetch(fake, "6.12")


# Of all suites together, as offers() asks them.
MADISON = """\
#!/bin/sh
fake=$(dirname "$0")
while [ "${1#-}" != "$1" ]; do shift 2; done
case $1 in
pkgnames) printf '%s\\n' linux-source-7.2 linux-source-6.12 linux-source linux-source-6.12-rt ;;
madison) shift; for name; do grep "^ *$name |" "$fake/madison"; done ;;
esac
"""
LINES = """\
 linux-source-6.12 | 6.12.118-1 | http://s.example/security trixie-security/main amd64 Packages
 linux-source-6.12 | 6.12.117-1 | http://s.example/security trixie-security/main amd64 Packages
 linux-source-6.12 | 6.12.117-1 | http://m.example/debian trixie/main amd64 Packages
 linux-source-6.12 | 6.12.117-1 | http://m.example/debian trixie/main Sources
 linux-source-7.2 | 7.2.6-1~bpo13+1 | http://m.example/debian trixie-backports/main amd64 Packages
nonsense
"""


def test_every_version_of_every_suite_is_offered_once(fake: Path) -> None:
    (fake / "apt-cache").write_text(MADISON)
    (fake / "madison").write_text(LINES)
    assert apt.offers(fake.parent / "work") == [
        apt.Offer("linux-source-6.12", "6.12.118-1", "trixie-security"),
        apt.Offer("linux-source-6.12", "6.12.117-1", "trixie-security"),
        apt.Offer("linux-source-7.2", "7.2.6-1~bpo13+1", "trixie-backports"),
    ]
    (fake / "madison").write_text("")
    with pytest.raises(RunError, match="no list of Debian's packages could be fetched"):
        apt.offers(fake.parent / "work")


def test_an_offer_is_fetched_from_its_suite(fake: Path) -> None:
    offer = apt.Offer("linux-source-7.2", "7.2.6-1", "trixie-backports")
    deb = apt.download(offer, fake.parent / "work" / "deb")
    assert (deb.package, deb.version) == ("linux-source-7.2", "7.2.6-1")
    *_, last = (fake / "calls").read_text().splitlines()
    assert "download linux-source-7.2=7.2.6-1" in last


def test_suites_of_the_security_archive_are_asked_of_it() -> None:
    repos = tuple(
        apt.parse_list(
            "deb http://m.example/debian bookworm main\n"
            "deb http://s.example/security bookworm-security main\n"
        )
    )
    found = apt.every_suite(apt.Mirrors(repos, True), "bookworm", Path("/debian.gpg"))
    asked = {suite: repo.uris for repo in found for suite in repo.suites}
    assert asked["trixie-security"] == ("http://s.example/security",)
    assert asked["forky"] == asked["bookworm-backports"] == ("http://m.example/debian",)
    nobodys = apt.every_suite(apt.Mirrors(repos[:1], False), None, Path("/debian.gpg"))
    assert {suite for repo in nobodys for suite in repo.suites} == {
        *("trixie", "trixie-backports", "forky", "sid", "trixie-security")
    }
