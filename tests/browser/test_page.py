# SPDX-License-Identifier: GPL-2.0-only
"""The report in a browser: from a telephone to a wall, light and dark, by keyboard, and without a
script."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

KINDS = ["bad", "count", "event", "light", "weights"]
WIDTHS = {390: 844, 768: 1024, 1280: 800, 1920: 1080, 3840: 2160}
FONTS = ["", "DejaVu Sans", "Liberation Sans Narrow"]
Theme = Literal["light", "dark"]

# Of a text as it is drawn, turned or not: its corners on the screen, a little inside.
_OVERLAPS = """() => {
  const corners = (text) => {
    const box = text.getBBox(), to = text.getScreenCTM(), found = [];
    for (const [x, y] of [[0, 0], [1, 0], [1, 1], [0, 1]])
      found.push(new DOMPoint(box.x + .5 + x * (box.width - 1),
                              box.y + box.height * (.2 + .6 * y)).matrixTransform(to));
    return found;
  };
  const apart = (a, b) => [a, b].some((one) => one.some((p, i) => {
    const q = one[(i + 1) % 4], n = [q.y - p.y, p.x - q.x];
    const along = (points) => points.map((r) => r.x * n[0] + r.y * n[1]);
    return Math.max(...along(a)) <= Math.min(...along(b))
        || Math.max(...along(b)) <= Math.min(...along(a));
  }));
  const wrong = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const texts = [...svg.querySelectorAll("text")].filter(
      (text) => text.textContent.trim() && text.getClientRects().length);
    const boxes = texts.map(corners);
    for (let i = 0; i < texts.length; i++)
      for (let j = i + 1; j < texts.length; j++)
        if (!apart(boxes[i], boxes[j]))
          wrong.push(`${svg.parentElement.parentElement.id}: `
                     + `${texts[i].textContent} / ${texts[j].textContent}`);
  }
  return wrong;
}"""

# The contrast of text: the ratio of the brighter to the darker, as WCAG has it.
_PALE = """() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map((part) => {
      const c = part / 255;
      return c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
    });
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const contrast = (color) => {
    const ink = light(color);
    return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
  };
  const words = [...document.querySelectorAll("p, td, th, li a, dd, dt, figcaption, h1, h2, h3")]
    .map((one) => [one, getComputedStyle(one).color]);
  const labels = [...document.querySelectorAll("figure svg text")]
    .map((one) => [one, getComputedStyle(one).fill]);
  return [...words, ...labels].filter(([, color]) => contrast(color) < 4.5)
    .map(([one, color]) => `${one.textContent.slice(0, 30)}: ${color}`);
}"""

_OUTSIDE = """() => [...document.querySelectorAll("figure, table")].flatMap((one) => {
  const box = one.closest(".scroll") ?? one.querySelector(".scroll");
  const seen = box.getBoundingClientRect();
  const inner = box.scrollWidth <= box.clientWidth + 1
    || getComputedStyle(box).overflowX === "auto";
  const fits = seen.left >= 0 && seen.right <= innerWidth + 1 && inner;
  return fits ? [] : [box.outerHTML.slice(0, 80)];
})"""


@contextmanager
def _shown(
    browser: Browser, address: str, width: int, theme: Theme = "light", *, scripts: bool = True
) -> Iterator[Page]:
    """A page in a window; what goes wrong in it fails the test."""
    window = browser.new_context(
        viewport={"width": width, "height": WIDTHS[width]},
        color_scheme=theme,
        java_script_enabled=scripts,
        reduced_motion="reduce",
    )
    page = window.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.goto(address)
    yield page
    window.close()
    assert wrong == []


def _photograph(page: Page, name: str, *, full_page: bool = False) -> None:
    """Keep a screenshot in ISOBLK_SCREENSHOTS; without one none, as it takes long."""
    if directory := os.environ.get("ISOBLK_SCREENSHOTS"):
        page.screenshot(path=Path(directory) / f"{name}.png", full_page=full_page)


@pytest.mark.parametrize("kind", KINDS)
def test_it_fits_and_is_legible(browser: Browser, pages: dict[str, str], kind: str) -> None:
    with _shown(browser, pages[kind], 390) as page:
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            assert page.evaluate(_PALE) == [], theme
            for width, height in WIDTHS.items():
                page.set_viewport_size({"width": width, "height": height})
                _photograph(page, f"{kind}-{width}-{theme}")
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert page.evaluate(_OUTSIDE) == [], (width, theme)


@pytest.mark.parametrize("font", FONTS)
@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_figures_do_not_collide(
    browser: Browser, pages: dict[str, str], kind: str, font: str
) -> None:
    with _shown(browser, pages[kind], 1280) as page:
        if font:
            page.add_style_tag(content=f"svg text {{ font-family: '{font}' !important }}")
        assert page.evaluate(_OVERLAPS) == []
        _photograph(page, f"{kind}-font-{font or 'own'}", full_page=True)


def test_the_check_for_colliding_labels_finds_one(browser: Browser, pages: dict[str, str]) -> None:
    with _shown(browser, pages["weights"], 1280) as page:
        page.add_style_tag(content="figure svg text { font-size: 30px !important }")
        page.evaluate(
            "document.querySelectorAll('svg text').forEach((t) => t.removeAttribute('textLength'))"
        )
        assert page.evaluate(_OVERLAPS) != []


def test_every_figure_has_a_name_and_says_its_values(
    browser: Browser, pages: dict[str, str]
) -> None:
    with _shown(browser, pages["weights"], 1280) as page:
        figures = page.locator("figure svg")
        assert figures.count() > 5
        for at in range(figures.count()):
            figure = figures.nth(at)
            assert figure.get_attribute("role") == "img"
            ids = (figure.get_attribute("aria-labelledby") or "").split()
            texts = [page.locator(f"[id='{one}']").text_content() or "" for one in ids]
            assert len(texts) == 2
            assert texts[0]
            assert any(char.isdigit() for char in texts[1]), texts
        assert page.get_by_role("img", name="Share against weight").count() == 1


@pytest.mark.parametrize("kind", ["count", "event", "light", "weights"])
def test_the_first_screen_answers(browser: Browser, pages: dict[str, str], kind: str) -> None:
    for width in (1280, 390):
        with _shown(browser, pages[kind], width) as page:
            screen = WIDTHS[width]
            for what in (".answer", ".evidence", ".choices table"):
                box = page.locator(what).bounding_box()
                assert box is not None
                # The lines of a table may go on below a telephone's screen.
                bottom = box["y"] if width == 390 and "table" in what else box["y"] + box["height"]
                assert bottom <= screen, what
            assert page.locator(".choices tbody tr").count() <= 5
            box = page.locator("#choice svg:visible").bounding_box()
            assert box is not None
            if width == 1280:
                assert box["y"] + min(box["height"], 200) <= screen


def test_without_a_valid_run_it_says_so(browser: Browser, pages: dict[str, str]) -> None:
    with _shown(browser, pages["bad"], 390) as page:
        assert "No answer yet" in page.locator(".answer").inner_text()
        assert page.locator("figure").count() == 0


def _first_column(page: Page, table: str, column: int) -> list[str]:
    return page.locator(f"{table} tbody tr:not([hidden]) td:nth-child({column})").all_inner_texts()


def test_a_column_sorts_by_the_value_of_its_figures(
    browser: Browser, pages: dict[str, str]
) -> None:
    with _shown(browser, pages["weights"], 1280) as page:
        head = page.locator("#runs-table th", has_text="IOPS")
        before = _first_column(page, "#runs-table", 1)
        head.locator("button").focus()
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "descending"
        assert _first_column(page, "#runs-table", 1)[0] == "none"
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert _first_column(page, "#runs-table", 1)[0] == "bfq"
        # Rows without a figure are last in both directions.
        assert _first_column(page, "#runs-table", 4)[-1] == "–"  # noqa: RUF001
        assert sorted(before) == sorted(_first_column(page, "#runs-table", 1))
        name = page.locator("#runs-table th", has_text="scheduler")
        name.locator("button").click()
        assert head.get_attribute("aria-sort") == "none"
        assert _first_column(page, "#runs-table", 1)[0] in ("bfq", "none")


def test_the_filter_keeps_rows_that_have_all_the_words(
    browser: Browser, pages: dict[str, str]
) -> None:
    with _shown(browser, pages["weights"], 1280) as page:
        field = page.get_by_label("Filter")
        field.focus()
        page.keyboard.type("bfq RANDWRITE")
        assert _first_column(page, "#runs-table", 1) == ["bfq"]
        assert page.locator("#filtered").inner_text() == "1 of 21 shown"
        assert page.locator("details.run:visible").count() == 1
        field.fill("")
        assert len(_first_column(page, "#runs-table", 1)) == 21
        assert page.locator("#filtered").inner_text() == ""


def test_a_head_explains_itself_to_pointer_keyboard_and_reader(
    browser: Browser, pages: dict[str, str]
) -> None:
    with _shown(browser, pages["weights"], 1280) as page:
        tip = page.locator("#tip")
        button = page.locator("#runs-table th", has_text="Jain").locator("button")
        described = button.get_attribute("aria-describedby")
        meaning = page.locator(f"[id='{described}']").inner_text()
        assert meaning.startswith("Jain's index")
        button.focus()
        assert tip.inner_text() == meaning
        page.keyboard.press("Escape")
        assert tip.is_hidden()
        word = page.locator(".choices a.word").first
        word.hover()
        assert "largest |share / ideal - 1|" in tip.inner_text()
        # A finger has neither: it taps, and the page stays where it is.
        page.mouse.move(0, 0)
        tip.wait_for(state="hidden")
        word.click()
        assert tip.is_visible()
        assert "#" not in page.url


def test_the_keyboard_reaches_all_there_is_to_do(browser: Browser, pages: dict[str, str]) -> None:
    with _shown(browser, pages["weights"], 1280) as page:
        reached = set()
        for _ in range(120):
            page.keyboard.press("Tab")
            reached.add(
                page.evaluate(
                    "() => { const one = document.activeElement; return one.closest('nav') ? 'nav '"
                    " + one.tagName : one.id || one.className || one.tagName; }"
                )
            )
            if "filter" in reached:
                break
        assert {"skip", "nav A", "nav BUTTON", "word", "filter"} <= reached


def test_the_theme_is_chosen_and_stays(browser: Browser, pages: dict[str, str]) -> None:
    with _shown(browser, pages["event"], 1280, "light") as page:
        paper = "getComputedStyle(document.body).backgroundColor"
        stored = "localStorage.getItem('isoblk-theme')"
        button = page.locator(".theme")
        # On a busy machine Chromium gives a document no storage once in some hundred loads: it
        # then reads nothing, and what it writes is lost. The next one has its storage again.
        for _ in range(5):
            assert page.evaluate(paper) == "rgb(255, 255, 255)"
            button.click()
            button.click()
            assert button.inner_text() == "Theme: dark"
            dark = page.evaluate(paper)
            assert dark != "rgb(255, 255, 255)"
            assert page.evaluate(stored) == "dark"
            page.reload()
            if page.evaluate(stored):
                break
        assert page.evaluate(stored) == "dark"
        assert page.evaluate(paper) == dark
        assert button.inner_text() == "Theme: dark"


def test_contents_stand_beside_the_page_or_are_folded(
    browser: Browser, pages: dict[str, str]
) -> None:
    with _shown(browser, pages["weights"], 1280) as page:
        page.get_by_role("link", name="How it was made").click()
        assert page.url.endswith("#made")
        # It stays in sight.
        assert page.get_by_role("link", name="Answer", exact=True).is_visible()
        box = page.get_by_role("link", name="Answer", exact=True).bounding_box()
        assert box is not None
        assert 0 <= box["y"] < WIDTHS[1280]
    with _shown(browser, pages["weights"], 390) as page:
        link = page.get_by_role("link", name="How it was made")
        assert link.is_hidden()
        page.locator("nav summary").focus()
        page.keyboard.press("Enter")
        link.click()
        assert link.is_hidden()


def test_a_refuted_paper_is_a_finding_and_an_own_claim_that_fails_a_failure(
    browser: Browser, pages: dict[str, str]
) -> None:
    with _shown(browser, pages["weights"], 1280) as page:
        heads = page.locator("#claims h3").all_text_contents()
        assert heads == ["This study's own1 holds", "P31 confirmed", "P21 refuted"]
        assert page.locator("#claims .tag").all_inner_texts() == ["holds", "confirmed", "refuted"]
        refuted, failing = (
            page.evaluate(
                "(name) => { const one = document.createElement('span');"
                " one.className = 'tag ' + name; document.body.append(one);"
                " return getComputedStyle(one).color; }",
                name,
            )
            for name in ("refuted", "fails")
        )
        assert refuted != failing


def test_it_is_read_without_a_script(browser: Browser, pages: dict[str, str]) -> None:
    for width in (390, 1280):
        with _shown(browser, pages["weights"], width, scripts=False) as page:
            _photograph(page, f"no-script-{width}")
            assert page.locator(".answer").is_visible()
            assert page.locator("#runs-table").is_visible()
            assert page.get_by_role("link", name="How it was made").is_visible()
            # Controls without effect are not shown.
            assert page.locator("#filter").is_hidden()
            assert page.locator(".theme").is_hidden()
            # A head leads to what explains it.
            word = page.locator("#runs-table a.word").first
            target = (word.get_attribute("href") or "").removeprefix("#")
            word.click()
            assert page.url.endswith(f"#{target}")
            assert page.locator(f"[id='{target}']").is_visible()


def test_on_paper_it_has_no_controls(browser: Browser, pages: dict[str, str]) -> None:
    with _shown(browser, pages["weights"], 768, "dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.locator("nav").is_hidden()
        assert page.locator(".filter").is_hidden()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
