# SPDX-License-Identifier: GPL-2.0-only
"""Finish a drawn SVG: an accessible name, text widths that do not depend on the font, and unique
ids."""

import re
from html import escape, unescape

# Advance widths of Liberation Sans in thousandths of the size, which the charts' layout uses. Arial
# and Helvetica have the same. Each width has the characters with that width.
_REGULAR = {
    **dict.fromkeys("'", 191),
    **dict.fromkeys("ijl", 222),
    **dict.fromkeys("|", 260),
    **dict.fromkeys(" !,./:;I[\\]ft·", 278),
    **dict.fromkeys("()-`r", 333),
    **dict.fromkeys("{}", 334),
    **dict.fromkeys('"', 355),
    **dict.fromkeys("*", 389),
    **dict.fromkeys("°", 400),
    **dict.fromkeys("^", 469),
    **dict.fromkeys("Jcksvxyz", 500),
    **dict.fromkeys("±", 549),
    **dict.fromkeys("µ", 576),
    **dict.fromkeys("+<=>~×−", 584),  # noqa: RUF001 (signs of mathematics)
    **dict.fromkeys("FTZ", 611),
    **dict.fromkeys("&ABEKPSVXY", 667),
    **dict.fromkeys("CDHNRUw", 722),
    **dict.fromkeys("GOQ", 778),
    **dict.fromkeys("Mm", 833),
    **dict.fromkeys("%", 889),
    **dict.fromkeys("W", 944),
    **dict.fromkeys("…", 1000),
    **dict.fromkeys("@", 1015),
}
_BOLD = {
    **dict.fromkeys("'", 238),
    **dict.fromkeys(" ,./I\\ijl·", 278),
    **dict.fromkeys("|", 280),
    **dict.fromkeys("!()-:;[]`ft", 333),
    **dict.fromkeys("*r{}", 389),
    **dict.fromkeys("°", 400),
    **dict.fromkeys('"', 474),
    **dict.fromkeys("z", 500),
    **dict.fromkeys("±", 549),
    **dict.fromkeys("µ", 576),
    **dict.fromkeys("+<=>^~×−", 584),  # noqa: RUF001
    **dict.fromkeys("?FLTZbdghnopqu", 611),
    **dict.fromkeys("EPSVXY", 667),
    **dict.fromkeys("&ABCDHKNRU", 722),
    **dict.fromkeys("GOQw", 778),
    **dict.fromkeys("M", 833),
    **dict.fromkeys("%m", 889),
    **dict.fromkeys("W", 944),
    **dict.fromkeys("@", 975),
    **dict.fromkeys("…", 1000),
}
_OTHER = 556  # digits and most small letters

_TEXT = re.compile(r"<text([^>]*)>([^<]*)</text>")
_SIZE = re.compile(r'\bfont-size="([\d.]+)px"')
_BOLD_AT = 600
_WEIGHT = re.compile(r'\bfont-weight="(\d+|bold)"')
# Vega's labels of each part. The figure is one picture with a single name.
_INNER = re.compile(r' (?:role="graphics-[a-z]+"|aria-(?:roledescription|label|hidden)="[^"]*")')
_ROOT = re.compile(r"<svg ([^>]*)>")


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in pixels, as in the charts' layout."""
    widths = _BOLD if bold else _REGULAR
    return sum(widths.get(char, _OTHER) for char in text) * size / 1000


def finish(svg: str, name: str, title: str, text: str) -> str:
    """Return the final SVG.

    Args:
        svg: as drawn.
        name: of the figure: its ids begin with it, so that a page can have several.
        title: its accessible name.
        text: its description, with the main values.
    """
    svg = _INNER.sub("", _own_ids(svg, name))
    svg = _TEXT.sub(_as_wide, svg)
    named = (
        f'<svg role="img" aria-labelledby="{name}-title {name}-desc" \\1>'
        f'<title id="{name}-title">{_plain(title)}</title>'
        f'<desc id="{name}-desc">{_plain(text)}</desc>'
    )
    return _ROOT.sub(named, svg, count=1)


def _plain(text: str) -> str:
    """Escape text for SVG, and for re.sub()."""
    return escape(text, quote=False).replace("\\", "\\\\")


def _as_wide(match: re.Match[str]) -> str:
    """Return a text with the width of its layout."""
    attributes, content = match[1], match[2]
    size = _SIZE.search(attributes)
    text = unescape(content)
    if size is None or not text.strip():
        return match[0]
    weight = _WEIGHT.search(attributes)
    bold = weight is not None and (weight[1] == "bold" or int(weight[1]) >= _BOLD_AT)
    wide = width(text, float(size[1]), bold=bold)
    fixed = f' textLength="{wide:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f"<text{attributes}{fixed}>{content}</text>"


def _own_ids(svg: str, name: str) -> str:
    """Renumber the ids: vl-convert continues its count from figure to figure."""
    ids = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    new = {old: f"{name}-{number}" for number, old in enumerate(ids)}
    svg = re.sub(r'\bid="([^"]+)"', lambda m: f'id="{new[m[1]]}"', svg)
    return re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{new.get(m[1], m[1])})", svg)
