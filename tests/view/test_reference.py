"""The reference pages in docs/ are those the rows generate now."""

import re
from pathlib import Path

from pto.isa import table
from pto.view.reference import pages

DOCS = Path(__file__).parent.parent.parent / "docs" / "isa"


def test_committed_pages_are_the_generated_ones() -> None:
    """Mend with `pto isa --docs docs/isa`."""
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert written == pages()


def test_the_type_table_links_every_row_to_its_heading() -> None:
    made = pages()
    text = made["types.md"]
    for row in table.rows():
        (line,) = [x for x in text.split("\n") if x.startswith(f"| [`{row.name}`](")]
        page, anchor = line.split("](")[1].split(")")[0].split("#")
        assert anchor == row.name.replace(".", "")
        assert f"\n### {row.name}\n" in made[page]


def test_every_row_has_its_source_its_python_call_and_its_codes() -> None:
    entries = {
        entry.split("\n", 1)[0]: entry
        for page in pages().values()
        for entry in re.split(r"^### ", page, flags=re.MULTILINE)[1:]
    }
    for row in table.rows():
        entry = entries[row.name]
        assert all(cite in entry for cite in row.cite)
        assert all(f"({rule.code})" in entry for rule in row.rules)
    assert "Python: `isa.tadd(dst, src0, src1)`" in entries["pto.tadd"]


def test_a_page_has_each_heading_once() -> None:
    for name, text in pages().items():
        headings = re.findall(r"^##+ .*", text, re.MULTILINE)
        assert sorted(headings) == sorted(set(headings)), name
