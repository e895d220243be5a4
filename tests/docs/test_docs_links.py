"""Links lead somewhere, and what the pages name in the source tree exists."""

import re
from pathlib import Path

import pytest
from docs_pages import PAGES, ROOT, anchors, links, page_id, spans

# The address that a reader opens in a browser; nothing is fetched by a test.
OUTSIDE = ("https://",)
SOURCE_FILE = re.compile(r"(?:[\w.]+/)+[\w-]+\.(?:py|po|service)")
SOURCE_FOLDERS = (ROOT, ROOT / "src/facho")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = [link for link in links(page) if not link.startswith(OUTSIDE) and not leads_somewhere(page, link)]

    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_source_file_that_a_page_names_exists(page: Path) -> None:
    named = [span for span in spans(page) if SOURCE_FILE.fullmatch(span)]

    assert [name for name in named if not any((folder / name).exists() for folder in SOURCE_FOLDERS)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    name, _hash, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(target))
