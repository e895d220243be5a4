"""The Markdown pages of the repository, and what tests look for in them."""

import re
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

# In a list they are indented.
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def page_id(page: Path) -> str:
    """Name a page in the output of tests."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return [text for found, text in all_blocks(page) if found == language]


def all_blocks(page: Path) -> list[tuple[str, str]]:
    """Return every fenced block as its language and its text."""
    return [(language, dedent(text)) for _indent, language, text in _FENCE.findall(page.read_text())]


def spans(page: Path) -> list[str]:
    """Return the inline code of a page."""
    return _SPAN.findall(_FENCE.sub("", page.read_text()))


def links(page: Path) -> list[str]:
    """Return the targets of links and images."""
    return _LINK.findall(_FENCE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """Return what a link may name after `#`: headings, in the form that code hosts give them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def rows(page: Path, *, heading: str) -> list[list[str]]:
    """Return the cells of the first table after a line that begins with `heading`, without its head."""
    after = page.read_text().split(f"\n{heading}", 1)[1]
    table = re.search(r"(?:^\|.*\|\n)+", after, re.MULTILINE)
    lines = table.group().splitlines()[2:] if table else []
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
