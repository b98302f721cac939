# SPDX-License-Identifier: GPL-2.0-only
"""Fetch kernel source packages from the Debian mirror that this machine's apt uses; on another
distribution, from Debian's own archive.

The system's apt state is only read. If its lists were never fetched, are out of date, or lack the
package, the package is fetched through a private apt state in a temporary directory. This needs no
root. apt verifies signatures as usual; for another suite or on another distribution, against
Debian's archive keyring, which the distribution packages.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from isoblk.errors import RunError, UserError

# Debian's testing, the first suite with kernels newer than those of a release.
DEFAULT_SUITE = "forky"

# Debian's release with the default kernel.
_RELEASE = "trixie"

# Address of Debian's archive for a machine without a mirror. Its contents are signed: no encryption
# is needed.
_ARCHIVE = "http://deb.debian.org/debian"
_KEYRING_PACKAGE = "debian-archive-keyring"
_OS_RELEASE = Path("/etc/os-release")
_NO_APT = "install apt, or give the kernel source with --source"

# Debian's suites with kernels newer than the default, and the subset that is in another archive.
_MORE_SUITES = (_RELEASE, f"{_RELEASE}-backports", DEFAULT_SUITE, "sid")
_SECURITY = f"{_RELEASE}-security"
_SECURITY_ARCHIVE = "http://deb.debian.org/debian-security"

# Names of a suite of Debian's archive, in addition to the release's codename.
_ALIASES = frozenset(
    {"stable", "oldstable", "oldoldstable", "testing", "unstable", "sid", "experimental"}
)

# One-line options whose deb822 field has another name (sources.list(5)).
_FIELD_OF_OPTION = {"arch": "architectures", "lang": "languages", "target": "targets"}

# Fields of a repository that state how to trust it; kept in a private apt state.
_TRUST_FIELDS = ("signed-by", "trusted", "check-valid-until", "check-date", "allow-insecure")

# Debian's keyring: .gpg up to Debian 13, also .pgp in later releases.
_KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
)


@dataclass(frozen=True)
class Repo:
    """A repository of binary packages, as in sources.list(5).

    Attributes:
        uris: addresses, each of which serves all suites.
        suites: codenames or suite names.
        components: such as main.
        options: all other deb822 fields, names in lower case, values verbatim with their
            continuation lines.
    """

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    def stanza(self) -> str:
        """Format the repository as deb822, only with the options that concern trust."""
        lines = [
            "Types: deb",
            "URIs: " + " ".join(self.uris),
            "Suites: " + " ".join(self.suites),
            "Components: " + " ".join(self.components),
        ]
        lines += [f"{name}: {self.options[name]}" for name in _TRUST_FIELDS if name in self.options]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Offer:
    """An available linux-source package.

    Attributes:
        package: its name.
        version: version of the package.
        suite: suite that has it.
    """

    package: str
    version: str
    suite: str

    @property
    def identity(self) -> str:
        """Return the source's directory name in the store, package_version."""
        return f"{self.package}_{self.version}"


@dataclass(frozen=True)
class Deb:
    """A downloaded package."""

    package: str
    version: str
    path: Path


def parse_list(text: str) -> list[Repo]:
    """Parse a one-line-style sources.list. Lines that apt would refuse are skipped."""
    repos = []
    for line in text.splitlines():
        match = re.fullmatch(
            r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>[^\s\[]\S*)\s+(?P<rest>.*)",
            line.partition("#")[0].strip(),
        )
        if not match:
            continue
        options = {}
        for option in (match["options"] or "").split():
            # Also "name+=value" and "name-=value".
            name, _, value = option.partition("=")
            name = name.rstrip("+-").lower()
            options[_FIELD_OF_OPTION.get(name, name)] = value.replace(",", " ")
        suite, *components = match["rest"].split() or [""]
        if components:
            repos.append(Repo((match["uri"],), (suite,), tuple(components), options))
    return repos


def parse_deb822(text: str) -> list[Repo]:
    """Parse a deb822-style .sources file. Disabled and source-only repositories are skipped."""
    repos = []
    # A comment inside a stanza does not end it.
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n(?:[ \t]*\n)+", "\n".join(lines)):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1] in (" ", "\t"):
                if name:
                    fields[name] += "\n" + line
            else:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        words = {name: tuple(fields.pop(name, "").split()) for name in _OWN_FIELDS}
        enabled = fields.pop("enabled", "yes").lower() not in ("no", "false", "0", "off", "without")
        if enabled and "deb" in words["types"] and words["uris"] and words["components"]:
            repos.append(Repo(words["uris"], words["suites"], words["components"], fields))
    return repos


_OWN_FIELDS = ("types", "uris", "suites", "components")


def read_repos(sourcelist: Path, sourceparts: Path) -> list[Repo]:
    """Read all repositories of a sources.list file and a sources.list.d directory; each may be
    absent."""
    repos = []
    parts = sorted(sourceparts.iterdir()) if sourceparts.is_dir() else []
    for path in [sourcelist, *parts]:
        parse = {".list": parse_list, ".sources": parse_deb822}.get(path.suffix)
        if parse and path.is_file():
            repos += parse(path.read_text(encoding="utf-8", errors="replace"))
    return repos


def debian_repos(repos: list[Repo], codename: str) -> list[Repo]:
    """Return the repositories that look like Debian's archive, with component main only."""
    chosen = []
    for repo in repos:
        suites = tuple(
            suite
            for suite in repo.suites
            if re.split(r"[-/]", suite)[0] in _ALIASES | ({codename} if codename else set())
        )
        if suites and "main" in repo.components:
            chosen.append(Repo(repo.uris, suites, ("main",), repo.options))
    return chosen


def mirrors_with_suite(repos: list[Repo], suite: str, keyring: Path) -> list[Repo]:
    """Return the configured mirrors with another suite, which keyring must have signed."""
    found: dict[str, Repo] = {}
    for repo in repos:
        if _of_security(repo):
            continue  # The security archive has only a release's updates.
        for uri in repo.uris:
            options = {
                name: value
                for name, value in repo.options.items()
                if name in _TRUST_FIELDS and name not in ("trusted", "allow-insecure")
            }
            options["signed-by"] = str(keyring)
            found.setdefault(uri.rstrip("/"), Repo((uri,), (suite,), ("main",), options))
    return list(found.values())


def _of_security(repo: Repo) -> bool:
    return all(re.search(r"-security|/updates", name) for name in repo.suites)


class Apt:
    """An apt state: the system's (without a configuration file), or a private one."""

    def __init__(self, config: Path | None = None) -> None:
        self._config = config

    def _run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "LC_ALL": "C"}
        program, *rest = command
        options = ["-c", str(self._config)] if self._config else []
        # As root, apt would drop to user _apt, which cannot write here, and warn.
        options += ["-o", "APT::Sandbox::User=root"]
        try:
            return subprocess.run(
                [program, *options, *rest],
                env=env,
                cwd=cwd,
                text=True,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except FileNotFoundError:
            raise UserError("apt is not on this machine", next=_NO_APT) from None

    def update(self) -> str:
        """Fetch the lists. Returns apt's errors as one line, "" if there are none."""
        return _complaints(self._run("apt-get", "-q", "update").stderr)

    def candidate(self, package: str) -> str | None:
        """Return the version that apt would install, None if the package is unknown."""
        output = self._run("apt-cache", "policy", package).stdout
        match = re.search(r"^\s*Candidate: (\S+)", output, re.MULTILINE)
        return None if match is None or match[1] == "(none)" else match[1]

    def names(self, prefix: str) -> list[str]:
        """Return the names of all packages with a prefix."""
        return self._run("apt-cache", "pkgnames", prefix).stdout.split()

    def offers(self, packages: Sequence[str]) -> list[Offer]:
        """Return all versions of packages, of each package the newest first."""
        if not packages:
            return []
        found: dict[tuple[str, str], Offer] = {}
        for line in self._run("apt-cache", "madison", *packages).stdout.splitlines():
            # "package | version | uri suite/component architecture Packages"
            columns = [column.strip() for column in line.split("|")]
            if len(columns) == 3 and (place := _SUITE_OF_LINE.search(columns[2])):
                offer = Offer(columns[0], columns[1], place[1])
                found.setdefault((offer.package, offer.version), offer)
        return list(found.values())

    def sha256(self, offer: Offer) -> str | None:
        """Return the checksum of a package in the signed lists, None if they lack it."""
        output = self._run("apt-cache", "show", f"{offer.package}={offer.version}").stdout
        found = re.search(r"^SHA256: ([0-9a-f]{64})$", output, re.MULTILINE)
        return found[1] if found else None

    def download(self, package: str, version: str, directory: Path) -> Deb:
        """Download a package into a directory.

        Raises:
            RunError: apt failed; the message has apt's error.
        """
        result = self._run("apt-get", "-q", "download", f"{package}={version}", cwd=directory)
        files = list(directory.glob(f"{package}_*.deb"))
        if result.returncode or not files:
            raise RunError(f"apt cannot download {package} {version}: {_complaints(result.stderr)}")
        return Deb(package, version, files[0])


# The suite, in a line of apt-cache madison.
_SUITE_OF_LINE = re.compile(r"\S+ ([\w.-]+)/\S+ \S+ Packages$")


def _complaints(stderr: str) -> str:
    """Return apt's error lines as one line."""
    lines = [line[2:].strip() for line in stderr.splitlines() if line.startswith("E:")]
    return "; ".join(dict.fromkeys(lines))


_PRIVATE_CONFIG = """\
Dir::Etc::sourcelist "{root}/isoblk.sources";
Dir::Etc::sourceparts "{root}/empty";
Dir::Etc::preferences "{root}/none";
Dir::Etc::preferencesparts "{root}/empty";
Dir::State::lists "{root}/lists";
Dir::Cache "{root}/cache";
APT::Default-Release "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "3";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


@contextmanager
def private(repos: list[Repo], parent: Path) -> Iterator[tuple[Apt, str]]:
    """Make and update an apt state with these repositories. Yields it and the errors of the update.

    The system's pins, default release and hooks do not apply; its proxy and passwords do.
    """
    with TemporaryDirectory(prefix="apt-", dir=parent) as name:
        root = Path(name)
        for directory in ("empty", "lists/partial", "cache/archives/partial"):
            (root / directory).mkdir(parents=True)
        (root / "isoblk.sources").write_text("\n".join(repo.stanza() for repo in repos))
        config = root / "apt.conf"
        config.write_text(_PRIVATE_CONFIG.format(root=root))
        apt = Apt(config)
        yield apt, apt.update()


@dataclass(frozen=True)
class Mirrors:
    """Repositories with Debian's packages.

    Attributes:
        repos: repositories of Debian's archive.
        configured: whether apt itself is configured with them.
    """

    repos: tuple[Repo, ...]
    configured: bool


def mirrors() -> Mirrors:
    """Return Debian's repositories in this machine's apt configuration, else Debian's archive.

    Raises:
        UserError: apt is not installed.
    """
    if not shutil.which("apt-get"):
        raise UserError("apt is not on this machine", next=_NO_APT)
    codename = debian_codename()
    if codename is not None and (repos := debian_repos(_system_repos(), codename)):
        return Mirrors(tuple(repos), configured=True)
    return Mirrors((Repo((_ARCHIVE,), (_RELEASE,), ("main",)),), configured=False)


def _system_repos() -> list[Repo]:
    """Return all repositories in this machine's apt configuration."""
    output = subprocess.run(
        ["apt-config", "shell", "L", "Dir::Etc::sourcelist/f", "P", "Dir::Etc::sourceparts/d"],
        text=True,
        capture_output=True,
        check=False,
    ).stdout
    paths = dict(re.findall(r"^(L|P)='(.*)'$", output, re.MULTILINE))
    return read_repos(
        Path(paths.get("L", "/etc/apt/sources.list")),
        Path(paths.get("P", "/etc/apt/sources.list.d")),
    )


def debian_codename() -> str | None:
    """Return the codename of the Debian release on which this machine's system is based.

    Returns:
        "" if the system does not state it; None on another distribution, whose repositories are not
            Debian's.
    """
    text = _OS_RELEASE.read_text() if _OS_RELEASE.is_file() else ""
    facts: dict[str, str] = dict(re.findall(r"^(\w+)=[\"']?([^\"'\n]*)", text, re.MULTILINE))
    if facts.get("ID") == "debian":
        return facts.get("VERSION_CODENAME", "")
    return facts.get("DEBIAN_CODENAME")


def lacking_packages() -> list[str]:
    """Return the packages that fetching needs in addition to apt, and that are not installed."""
    # Always installed on Debian; the apt of another distribution does not have Debian's keys.
    keyring = any(path.is_file() for path in _KEYRINGS)
    return [] if keyring or not shutil.which("apt-get") else [_KEYRING_PACKAGE]


def archive_keyring() -> Path:
    """Return the path of Debian's archive keyring.

    Raises:
        UserError: it is not installed.
    """
    for path in _KEYRINGS:
        if path.is_file():
            return path
    raise UserError(
        "Debian's archive keyring is missing", next=f"run: apt install {_KEYRING_PACKAGE}"
    )


_PREFIX = "linux-source-"
_SOURCE_PACKAGE = re.compile(r"linux-source-(\d+)\.(\d+)")


def newest_source(names: list[str]) -> str | None:
    """Return the package linux-source-N.M with the highest version."""
    versions = [
        (int(match[1]), int(match[2]))
        for name in names
        if (match := _SOURCE_PACKAGE.fullmatch(name))
    ]
    return "linux-source-{}.{}".format(*max(versions)) if versions else None


def fetch(version: str | None, suite: str | None, directory: Path) -> Deb:
    """Download linux-source-VERSION.

    Args:
        version: N.M; None for the newest of the suite.
        suite: suite of the mirror; None for the suites in apt's configuration and, if they lack the
            package, Debian's release and DEFAULT_SUITE.
        directory: an empty directory for the package; temporary files are put next to it.

    Raises:
        UserError: there is no such package.
        RunError: the package exists and cannot be downloaded.
    """
    package = f"linux-source-{version}" if version else None

    def find(state: Apt) -> Sequence[tuple[str, str]]:
        name = package or newest_source(state.names(_PREFIX))
        found = state.candidate(name) if name else None
        return [(name, found)] if name and found else []

    (deb,) = fetch_all(
        find, package or "linux-source-*", suite, directory, configured=package is not None
    )
    return deb


def offers(directory: Path) -> list[Offer]:
    """Return the linux-source packages of all Debian suites on the mirror, of each package the
    newest first.

    Args:
        directory: for temporary files.

    Raises:
        UserError: apt or Debian's keyring is not installed.
        RunError: no suite's list could be fetched.
    """
    repos = every_suite(mirrors(), debian_codename(), archive_keyring())
    with private(repos, directory) as (state, trouble):
        names = [name for name in state.names(_PREFIX) if _SOURCE_PACKAGE.fullmatch(name)]
        found = state.offers(sorted(names))
    if not found:
        raise RunError(f"no list of Debian's packages could be fetched: {trouble or 'it is empty'}")
    return found


def download(offer: Offer, directory: Path) -> Deb:
    """Download a package that offers() returned.

    Args:
        offer: the package.
        directory: an empty directory for it; temporary files are put next to it.

    Raises:
        UserError: apt or Debian's keyring is not installed.
        RunError: the download failed.
    """
    repos = every_suite(mirrors(), debian_codename(), archive_keyring())
    of_it = [replace(one, suites=(offer.suite,)) for one in repos if offer.suite in one.suites]
    with private(of_it, directory.parent) as (state, _):
        return state.download(offer.package, offer.version, directory)


def every_suite(found: Mirrors, codename: str | None, keyring: Path) -> list[Repo]:
    """Return the configured repositories, and each suite that may have kernels for the lab."""
    repos = list(found.repos) if found.configured else []
    present = {suite for repo in repos for suite in repo.suites}
    wanted = [*_MORE_SUITES, *([f"{codename}-backports"] if codename else [])]
    for suite in dict.fromkeys(wanted):
        if suite not in present:
            repos += mirrors_with_suite(list(found.repos), suite, keyring)
    if _SECURITY not in present:
        own = [uri for repo in found.repos for uri in repo.uris if _of_security(repo)]
        options = {"signed-by": str(keyring)}
        uris = tuple(dict.fromkeys(own)) or (_SECURITY_ARCHIVE,)
        repos.append(Repo(uris[:1], (_SECURITY,), ("main",), options))
    return repos


def fetch_all(
    find: Callable[[Apt], Sequence[tuple[str, str]]],
    what: str,
    suite: str | None,
    directory: Path,
    *,
    configured: bool,
) -> list[Deb]:
    """Download packages that belong together.

    Args:
        find: returns their names and versions in an apt state; empty if it lacks one of them.
        what: their name, for errors.
        suite: suite of the mirror; None for DEFAULT_SUITE.
        directory: an empty directory for them; temporary files are put next to it.
        configured: without a suite, try the suites in apt's configuration and Debian's release
            first.

    Raises:
        UserError: there are no such packages.
        RunError: the packages exist and cannot be downloaded.
    """

    def download(state: Apt) -> list[Deb]:
        return [state.download(name, version, directory) for name, version in find(state)]

    found = mirrors()
    complaints = []
    suites = [suite or DEFAULT_SUITE]
    if configured and suite is None:
        if not any(_RELEASE in repo.suites for repo in found.repos if found.configured):
            suites.insert(0, _RELEASE)
        if found.configured:
            try:
                if debs := download(Apt()):
                    return debs
            except RunError as error:  # The system's lists may be out of date.
                complaints.append(str(error))
            with private(list(found.repos), directory.parent) as (state, trouble):
                if debs := download(state):
                    return debs
            complaints.append(trouble)
    for where in suites:
        repos = mirrors_with_suite(list(found.repos), where, archive_keyring())
        with private(repos, directory.parent) as (state, trouble):
            if debs := download(state):
                return debs
        complaints.append(trouble)
    reason = "; ".join(dict.fromkeys(text for text in complaints if text))
    missing = f"no package {what}"
    looked = " or ".join(suites)
    if reason:
        raise RunError(f"{missing} could be fetched from suite {looked}: {reason}")
    raise UserError(
        f"{missing} in the configured suites or in {looked}"
        if suite is None
        else f"{missing} in suite {suite}",
        next="name another --version or --suite, or give --source",
    )
