"""The reference pages in docs/ are those the rows generate now."""

from pathlib import Path

from pto.isa import table
from pto.view.reference import pages

DOCS = Path(__file__).parent.parent.parent / "docs" / "isa"


def test_committed_pages_are_the_generated_ones() -> None:
    """Mend with `pto isa --docs docs/isa`."""
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert written == pages()


def test_the_type_table_has_a_line_for_every_row_with_its_source() -> None:
    text = pages()["types.md"]
    for row in table.rows():
        (line,) = [x for x in text.split("\n") if x.startswith(f"| `{row.name}` |")]
        assert all(cite in line for cite in row.cite)
