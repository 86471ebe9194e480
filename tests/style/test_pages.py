"""Every relative link of every page leads to an existing file, and to an existing heading."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_page(page: Path) -> None:
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if path.startswith(("http:", "https:")):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{path} does not exist"
        if anchor:
            assert anchor in anchors(target), f"{path} has no heading {anchor}"


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert [name for name in sorted(pages) if name not in index] == []
