# SPDX-License-Identifier: GPL-2.0-only
"""What the site has beyond the pages of docs/: see mkdocs.yml.

Pages are read in the repository too, so their links go to files outside docs/ as they lie there.
Here such a file becomes a page of the site (`PAGES`) or is put beside it as text, and the link
leads there. The report of each study that the documentation quotes (QUOTED in the Makefile) is put
into reports/ if there is one in results/, and each page that names the study links to it. So the
site is whole in a fresh clone, where there are no results.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
# Files outside docs/ that are pages of the site, and where. README.md says what the home says.
PAGES = {
    "kernel/README.md": "reference/modules.md",
    "kernel/cache/README.md": "reference/dm-setcache.md",
    "studies/devices/README.md": "reference/presets.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "README.md": "index.md",
}
SOURCES = {page: source for source, page in PAGES.items() if page != "index.md"}

LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")
QUOTED = re.compile(r"^QUOTED := ((?:.*\\\n)*.*)$", re.MULTILINE)


def quoted() -> list[str]:
    """Return the studies that the documentation quotes, as the Makefile lists them."""
    found = QUOTED.search((ROOT / "Makefile").read_text())
    if found is None:
        raise ValueError("site_hooks.py: the Makefile has no QUOTED")
    return found[1].replace("\\\n", " ").split()


def _source(page: str) -> str:
    """Return where a page's text lies in the repository."""
    return SOURCES.get(page, f"docs/{page}")


def _outside(page: str, target: str) -> str | None:
    """Return the repository's file that a link of a page leads to, if it lies outside docs/."""
    if "://" in target or target.startswith(("/", "mailto:")):
        return None
    path = os.path.normpath(os.path.join(os.path.dirname(_source(page)), target))  # noqa: PTH118, PTH120
    if page not in SOURCES and path.startswith("docs/"):
        return None
    return path if (ROOT / path).is_file() else None


def _place(path: str) -> str:
    """Return where a file of the repository is in the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"files/{path}.txt")


def _linked(page: str) -> Iterator[str]:
    for target in LINK.findall((ROOT / _source(page)).read_text()):
        path = _outside(page, target)
        if path is not None:
            yield path


def _has_report(study: str) -> bool:
    return (RESULTS / study / "report.html").is_file()


def _reports_index() -> str:
    lines = [
        "# Reports",
        "",
        "`isoblk report` writes one page for a study: shares, totals, latency, the claims with",
        "their verdicts, and for every run the script that made it. These are the studies that",
        "this documentation quotes. A report is here if the study had been run when the site was",
        "made; the command makes the others, and `make figures site` all of them.",
        "",
        "| study | report |",
        "|---|---|",
    ]
    for study in quoted():
        command = f"`isoblk run studies/{study}.toml && isoblk report results/{study} && make site`"
        report = f"[report]({study}/report.html)" if _has_report(study) else command
        lines.append(f"| {study} | {report} |")
    return "\n".join(lines) + "\n"


def _reports_of(page: str, text: str) -> str:
    """Return a section that links to the reports of the studies that the text names, or ""."""
    named = [
        study
        for study in quoted()
        if re.search(rf"\b{re.escape(study)}\.toml\b|`{re.escape(study)}`", text)
    ]
    if not named:
        return ""
    up = "../" * page.count("/")
    there = [f"[{one}]({up}reports/{one}/report.html)" for one in named if _has_report(one)]
    absent = [one for one in named if not _has_report(one)]
    lines = ["", '!!! note "Reports of the studies on this page"', ""]
    if there:
        lines += ["    " + ", ".join(there) + ".", ""]
    if absent:
        lines.append(
            f"    Not made yet, [see how]({up}reports/index.md): " + ", ".join(absent) + "."
        )
    return "\n".join(lines) + "\n"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/, the files that pages link to, and the reports."""
    for page, source in SOURCES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    index = File.generated(config, "reports/index.md", content=_reports_index())
    pages = [file.src_uri for file in files.documentation_pages()]
    files.append(index)
    for path in sorted({path for page in pages for path in _linked(page)}):
        place = _place(path)
        if place.startswith("files/"):
            files.append(
                File.generated(
                    config,
                    place,
                    abs_src_path=str(ROOT / path),
                    inclusion=InclusionLevel.NOT_IN_NAV,
                )
            )
    for study in quoted():
        if not _has_report(study):
            continue
        made = RESULTS / study
        for path in (made / "report.html", *sorted((made / "figures").glob("*.svg"))):
            files.append(
                File.generated(
                    config,
                    f"reports/{study}/{path.relative_to(made).as_posix()}",
                    abs_src_path=str(path),
                    inclusion=InclusionLevel.NOT_IN_NAV,
                )
            )
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to files outside docs/ to their place in the site; link the reports."""
    name = page.file.src_uri
    if name == "reports/index.md":
        return markdown

    def placed(found: re.Match[str]) -> str:
        path = _outside(name, found[1])
        if path is None:
            return found[1]
        return os.path.relpath(_place(path), os.path.dirname(name) or ".")  # noqa: PTH120

    return LINK.sub(placed, markdown) + _reports_of(name, markdown)
