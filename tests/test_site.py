"""The pages of the site as `make docs` gathers them: links, anchors, spelling, internal words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from docs.make import decisions, site
from pto.isa import table

ROOT = Path(__file__).parent.parent
WORDS = Path(__file__).with_name("words.txt")
_FENCE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """Every page with its text; code is left out."""
    folder = tmp_path_factory.mktemp("site")
    site.assemble(folder)
    return {
        page.relative_to(folder): re.sub(
            r"``.+?``|`[^`]*`", "", _FENCE.sub("", page.read_text("utf-8"))
        )
        for page in folder.rglob("*.md")
    } | {page.relative_to(folder): "" for page in folder.rglob("*.png")}


def anchors(text: str) -> set[str]:
    return {f"#{decisions.anchor(h)}" for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_links_lead_to_pages_and_headings(pages: dict[Path, str], tmp_path: Path) -> None:
    headings = {page: anchors(text) for page, text in with_code(tmp_path).items()}
    wrong: list[str] = []
    for page, text in pages.items():
        for target, anchor in _LINK.findall(text):
            if "://" in target:
                continue
            at = Path(re.sub(r"[^/]+/\.\./", "", (page.parent / target).as_posix()))
            at = at if target else page
            missing = at not in pages and not target.endswith(".ipynb")
            if missing or (anchor and anchor not in headings[at]):
                wrong.append(f"{page}: {target}{anchor}")
    assert wrong == []


def with_code(folder: Path) -> dict[Path, str]:
    """Headings may hold inline code, so anchors are read from whole pages."""
    site.assemble(folder)
    return {
        page.relative_to(folder): _FENCE.sub("", page.read_text("utf-8"))
        for page in folder.rglob("*.md")
    }


def test_every_page_is_in_the_navigation_or_linked_from_an_index(pages: dict[Path, str]) -> None:
    listed = {Path(path) for _, path in site.flat(site.NAVIGATION)}
    assert listed <= pages.keys()
    below = {p for p in pages if p.parts[0] in ("diagnostics", "examples", "pictures")}
    assert set(pages) - listed - below == set()


def test_words_of_the_site_are_spelt_right(pages: dict[Path, str]) -> None:
    """Words of an English dictionary, British spelling and the words of the domain."""
    package = pytest.importorskip("spellchecker", reason="pip install pyspellchecker")
    english = package.SpellChecker()
    own = set(WORDS.read_text("utf-8").split())
    own |= {part for row in table.rows() for part in re.split(r"[._]", row.name)}
    unknown: dict[str, str] = {}
    for page, text in pages.items():
        for word in words(text) - own:
            if english.unknown([word]):
                unknown.setdefault(word, str(page))
    assert unknown == {}, "correct them, or add them to tests/words.txt"


def words(text: str) -> set[str]:
    """Plain words of prose in lower case: no links, names, abbreviations or numbers."""
    prose = re.sub(r"<[^>]*>|\]\([^)]*\)|https?://\S+|\b[\w./*-]*[\d_./*][\w./*-]*", " ", text)
    return {w.lower() for w in re.findall(r"(?<![\w@#'-])[A-Za-z]?[a-z]{2,}(?![\w'])", prose)}


def test_a_misspelt_word_is_seen() -> None:
    assert words("A tlaod and TLOAD of 16x16 tielss, see docs/tiles.md") == {
        "and",
        "of",
        "see",
        "tielss",
        "tlaod",
    }


def test_the_list_of_words_is_sorted_and_has_each_once() -> None:
    listed = WORDS.read_text("utf-8").split()
    assert listed == sorted(set(listed))


INTERNAL = re.compile(r"\b[Ss]eeds? ?00\d|\b\w+\.yaml#|\bshared/\w+\.md|/tmp/w\b|\bmy session\b")


def test_public_files_cite_nothing_internal() -> None:
    """Documents and folders of the maintainers' workshop are not part of the project."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no git checkout: the list of public files is unknown")
    found = [
        f"{name}: {match[0]}"
        for name in listed.stdout.splitlines()
        if Path(name).suffix in (".py", ".md", ".toml", ".pto", ".cpp", ".hpp")
        and name != "tests/test_site.py"
        for match in INTERNAL.finditer((ROOT / name).read_text("utf-8", errors="replace"))
    ]
    assert found == []
