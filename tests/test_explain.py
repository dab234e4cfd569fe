"""Every code has a page, every page has a code, and every page teaches by a pair of programs."""

import re
from pathlib import Path

import pytest

from pto.core.errors import AREAS

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "pto" / "explain").glob("*.md"))
CODE = re.compile(r"PTO-[A-Z]\d{3}")


def codes_in_sources() -> set[str]:
    sources = (ROOT / "pto").rglob("*.py")
    return {code for path in sources for code in CODE.findall(path.read_text(encoding="utf-8"))}


def section(page: str, heading: str) -> str:
    _, found, rest = page.partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0] if found else ""


def test_every_code_in_the_sources_has_a_page():
    assert codes_in_sources() - {path.stem for path in PAGES} == set()


def test_every_page_belongs_to_a_code_in_the_sources():
    assert {path.stem for path in PAGES} - codes_in_sources() == set()


def test_there_are_pages_to_check():
    assert PAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_has_title_rule_wrong_and_right(path: Path):
    page = path.read_text(encoding="utf-8")
    first, _, body = page.partition("\n")
    assert re.fullmatch(rf"# {path.stem}: \S.*[^.]", first)
    assert path.stem[4] in AREAS
    rule = body.partition("\n## ")[0].strip()
    assert len(rule) > 80, "the rule in plain words, not only a title"
    for heading in ("Wrong", "Right"):
        assert re.search(r"```\w+\n.+?\n```", section(page, heading), re.DOTALL), heading
    assert section(page, "Wrong").strip() != section(page, "Right").strip()
