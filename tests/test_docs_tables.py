"""Tables and pictures of the guides that are made from data: current, complete, and used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.make import api, decisions, gallery, operators, pictures, porting, reports, site
from pto.lang import names

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", porting.PAGES, ids=lambda page: page.stem)
def test_tables_of_the_guides_are_current(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text == porting.rewritten(text), "run `make tables`"


def test_the_table_of_reports_is_current() -> None:
    text = reports.PAGE.read_text("utf-8")
    assert text == reports.rewritten(text), "run `make tables`"


def test_the_index_of_decisions_is_current_and_names_known_entries() -> None:
    text = decisions.PAGE.read_text("utf-8")
    assert text == decisions.rewritten(text), "run `make tables`"
    found = decisions.by_instruction(text)
    shared = "Refusals that neither PTOAS nor an assertion shares"
    assert found["vcgadd"] == ["Group reductions (vcgadd, vcgmax, vcgmin)", shared]
    assert "In place" in found["tfmod"]  # the entry spells it TFMOD
    assert "rint" not in found  # a rounding mode there, not the instruction


def test_the_gallery_page_is_current() -> None:
    assert gallery.PAGE.read_text("utf-8") == gallery.page(), "run `make tables`"
    modules = {p.stem for p in (ROOT / "examples" / "gallery").glob("*.py")} - {"__init__"}
    assert modules == set(gallery.files())


def test_the_page_of_operators_has_their_rows() -> None:
    lines = operators.written()
    known = {p.stem for p in (ROOT / "examples" / "operators").glob("*.py")}
    assert {call.operator for call in operators.calls()} <= known
    assert set(lines) <= known and len(lines) > 20
    assert operators.page(lines) == operators.PAGE.read_text("utf-8")


def test_every_table_stands_on_the_page() -> None:
    marked = [
        m
        for page in porting.PAGES
        for m in re.findall(r"<!-- table: (\w+) -->", page.read_text("utf-8"))
    ]
    assert sorted(marked) == sorted(porting.TABLES)


@pytest.mark.parametrize(
    ("table", "row"),
    [
        # pto-isa buffer_limits.hpp and Target Profiles, Target Profile Comparison.
        ("facts", "| L0C | 128 KB | 256 KB |"),
        ("facts", "| FP8 types (e4m3 / e5m2) | Not supported | Supported |"),
        # pto-isa TCI.hpp: floats on a2a3 only.
        ("gone", "| `tci` | elements bf16 f16 f32 |"),
        ("types", "| i64 u64 | `texpands` "),
    ],
)
def test_a_known_difference_is_in_its_table(table: str, row: str) -> None:
    assert row in porting.TABLES[table]()


def test_pictures_are_those_that_the_command_draws_and_the_pages_show() -> None:
    drawn = {path.name for path in pictures.FOLDER.glob("*.png")}
    plotted = {"cluster.png", "threads.png"}  # of bench/bench_cluster.py and bench_scale.py
    assert drawn - plotted == {*pictures.PICTURES, *pictures.DRAWN}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guide").glob("*.md")]
    shown = {n for page in pages for n in re.findall(r"pictures/(\w+\.png)", page.read_text())}
    assert shown == drawn


def without_code(page: Path) -> str:
    return re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)


def test_the_site_has_every_page_and_every_code(tmp_path: Path) -> None:
    site.assemble(tmp_path)
    codes = {path.stem for path in (ROOT / "pto" / "explain").glob("PTO-*.md")}
    assert {p.stem for p in (tmp_path / "diagnostics").glob("PTO-*.md")} == codes
    guides = {p.name for p in (ROOT / "docs" / "guide").glob("*.md")}
    assert {p.name for p in (tmp_path / "guide").glob("*.md")} == guides
    missing = [
        f"{page.relative_to(tmp_path)}: {link}"
        for page in tmp_path.rglob("*.md")
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", without_code(page))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert missing == []
    listed = {path for _, path in site.flat(site.NAVIGATION)}
    assert [path for path in listed if not (tmp_path / path).exists()] == []


def test_every_variable_of_the_environment_is_on_its_page() -> None:
    text = "".join(file.read_text("utf-8") for file in (ROOT / "pto").rglob("*.py"))
    used = set(re.findall(r'"(PTO_[A-Z_]+)"', text)) - {"PTO_CPU_SIM_UB_BYTES"}  # a macro of C++
    page = (ROOT / "docs" / "guide" / "environment.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(PTO_\w+)`", page, re.MULTILINE)) == used


def test_the_page_of_the_interface_has_every_name_with_its_meaning() -> None:
    text = api.page()
    entries = dict(re.findall(r"^### pto\.(\w+)\n\n((?:.+\n|\n(?!#))*)", text, re.MULTILINE))
    assert set(entries) == {*names.PUBLIC, *names.RENAMED}
    meanings = {
        n: re.sub(r"```.*?```|^\| .*", "", e, flags=re.S | re.M) for n, e in entries.items()
    }
    assert [n for n, e in meanings.items() if not e.strip()] == []
    assert "pto.load(source, rows=None, cols=None, *, role=None, pad=None)" in text


MAPS = ["CONTRIBUTING.md"] + [
    f"docs/{name}.md"
    for name in ("architecture", "changes_tested", "decisions_architecture", "decisions_isa")
]


@pytest.mark.parametrize("page", MAPS)
def test_files_that_a_page_names_exist(page: str) -> None:
    """`core/pad.py`, `run/jit`: the end of a path in the repository."""
    folders = [ROOT / name for name in ("pto", "tests", "docs", "bench", "examples", "editors")]
    paths = [ROOT / "pyproject.toml", *folders, *(p for f in folders for p in f.rglob("*"))]
    known = {"/" + p.relative_to(ROOT).as_posix() for p in paths if "__pycache__" not in p.parts}
    ends = {path[n:] for path in known for n, char in enumerate(path) if char == "/"}
    text = (ROOT / page).read_text("utf-8")
    named = set(re.findall(r"`(\w+(?:/[\w.]+)+|\w+\.py)/?`", text))
    assert len(named) > 5
    assert sorted(name for name in named if f"/{name}" not in ends) == []


@pytest.mark.parametrize("page", ["timing.md", "timing_cpp.md"])
def test_the_readme_has_the_median_errors_of_the_pages(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    median = re.search(r"[Mm]edian error (\d+\.\d)%", text)
    readme = (ROOT / "README.md").read_text("utf-8")
    row = next(line for line in readme.splitlines() if f"(docs/{page})" in line and "|" in line)
    assert median is not None and f"median error {median[1]} %" in row


def test_the_readme_has_the_figures_of_the_page_of_parity() -> None:
    """1,175 of 1,184 is a figure of the page itself; the others follow from its tables."""
    readme = (ROOT / "README.md").read_text("utf-8")
    page = (ROOT / "docs" / "parity.md").read_text("utf-8")
    same = re.search(r"verifies ([\d,]+) programs.*?same verdict on\s+([\d,]+)\.", page, re.DOTALL)
    models = re.search(r"^\| all \| ([\d,]+) \| ([\d,]+) \|", page, re.MULTILINE)
    system = re.search(r"^\| a2a3 \| ([\d,]+) \| ([\d,]+) \|", page, re.MULTILINE)
    assert same and models and system
    programs, agreed = (int(each.replace(",", "")) for each in same.groups())
    figures = [
        "1,175 of 1,184",
        f"{programs:,} programs",
        f"{agreed / programs:.1%}".replace("%", " %"),
        f"{models[2]} of {models[1]}",
        f"{system[2]} of {system[1]}",
    ]
    assert "1,175 of 1,184" in page
    assert [each for each in figures if each not in readme] == []


def test_the_readme_counts_the_rows_of_the_page_of_speed() -> None:
    rows = re.findall(
        r"^\| (.+?) \| ([\d.]+) (\w+) \|.*\| ([\d.]+) (\w+) \|$",
        (ROOT / "docs" / "speed.md").read_text("utf-8"),
        re.MULTILINE,
    )
    units = {"us": 1e-3, "ms": 1.0}
    ratios = {n: float(a) * units[u] / (float(b) * units[v]) for n, a, u, b, v in rows}
    faster = sum(ratio < 1 for ratio in ratios.values())
    slower = [100 * (ratio - 1) for ratio in ratios.values() if 1 <= ratio < 1.5]
    words = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert (len(rows), faster) == (10, 7)
    assert "Of the ten rows with torch [on the full list](docs/speed.md), seven are faster" in words
    assert f"up to {max(slower):.0f} % slower" in words
    front = re.findall(r"^\| .* ms \|$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert len(front) == 4 and set(front) <= set((ROOT / "docs/speed.md").read_text().split("\n"))
