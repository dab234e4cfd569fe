"""`make docs`: gathers the pages, the diagnostics and the examples, and builds the site from them.

Sources go to build/docs first, because pages of diagnostics and examples are made, not kept.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from docs.make import api, decisions
from pto.cli import explain
from pto.core.errors import AREAS

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "build" / "docs"
SITE = ROOT / "site"

NAVIGATION: list[tuple[str, Any]] = [
    ("Home", "index.md"),
    (
        "Learn",
        [
            ("Tutorial", "tutorial.md"),
            ("Coming from Triton, CUDA or NumPy", "guide/coming_from.md"),
            ("Tile expressions", "guide/expressions.md"),
            ("Control flow", "guide/control_flow.md"),
            ("Gallery", "gallery.md"),
            ("Operators", "operators.md"),
            ("Examples", "examples/index.md"),
        ],
    ),
    (
        "Write",
        [
            ("Shapes, grids, coverage", "guide/shapes.md"),
            ("Types and formats", "guide/types.md"),
            ("Layouts", "guide/layouts.md"),
            ("Tiles and valid regions", "guide/tiles.md"),
            ("Movement", "guide/movement.md"),
            ("Execution and profiles", "guide/execution.md"),
            ("Queues", "guide/queues.md"),
            ("Editors", "guide/editor.md"),
            ("Coding agents", "guide/agents.md"),
            ("Glossary", "glossary.md"),
            ("Two specifications called PTO ISA", "pto_spec.md"),
        ],
    ),
    (
        "Check",
        [
            ("The sanitizer", "guide/sanitizer.md"),
            ("Testing and debugging", "guide/testing.md"),
            ("Proofs for every size", "guide/prove.md"),
            ("Judging kernels for a task", "guide/judge.md"),
            ("Kernels in CI", "guide/ci.md"),
            ("Who orders the pipes", "study.md"),
            ("Faults that were reported", "reports.md"),
        ],
    ),
    (
        "Speed",
        [
            ("How long on the chip", "guide/timing.md"),
            ("From a natural kernel to an expert's time", "guide/optimize.md"),
            ("A kernel on one page", "guide/view.md"),
            ("Times, measured and predicted", "timing.md"),
            ("Times of C++ kernels", "timing_cpp.md"),
            ("Times of single launches", "timing_rows.md"),
            ("Speed of the machine itself", "speed.md"),
        ],
    ),
    (
        "Scale",
        [
            ("PyTorch", "guide/torch.md"),
            ("A decoder layer", "guide/decoder.md"),
            ("Graphs of tasks", "guide/graphs.md"),
            ("From a laptop to a cluster", "guide/cluster.md"),
        ],
    ),
    (
        "Hardware",
        [
            ("C++ kernels", "guide/cpp.md"),
            ("Porting from a2a3 to a5", "guide/porting.md"),
            ("To the hardware", "guide/hardware.md"),
        ],
    ),
    (
        "Reference",
        [
            ("The command line", "guide/command_line.md"),
            ("Environment variables", "guide/environment.md"),
            ("Python interface", "api.md"),
            ("Diagnostics", "diagnostics/index.md"),
        ],
    ),
    (
        "Instructions",
        [
            ("Overview", "isa/README.md"),
            ("Tile", "isa/tile.md"),
            ("Vector", "isa/vector.md"),
            ("Predicate", "isa/predicate.md"),
            ("Cube and fixpipe", "isa/cube.md"),
            ("DMA", "isa/dma.md"),
            ("Communication", "isa/comm.md"),
            ("Scalar and control", "isa/scalar.md"),
            ("Support", "isa/support.md"),
            ("Shared dialects", "isa/shared.md"),
            ("SIMT", "isa/simt.md"),
            ("Element types", "isa/types.md"),
        ],
    ),
    (
        "Project",
        [
            ("Parity", "parity.md"),
            ("Architecture", "architecture.md"),
            ("Decisions: instruction set", "decisions_isa.md"),
            ("Decisions: architecture", "decisions_architecture.md"),
            ("Contributing", "contributing.md"),
            ("How a change is tested", "changes_tested.md"),
            ("Changes", "changelog.md"),
            ("Security", "security.md"),
        ],
    ),
]

# Pages of the site that are files outside docs/: site path -> path in the repository.
FROM_ROOT = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}

# No font and no script from elsewhere: a page needs no network.
CONFIG = """\
[project]
site_name = "pto-machine"
site_description = "A PTO machine in Python: check, run and sanitize tile kernels without an NPU."
docs_dir = "{docs}"
site_dir = "{site}"
use_directory_urls = false
extra_css = ["site.css"]
nav = {nav}

[project.theme]
language = "en"
font = false
features = ["content.code.copy", "navigation.footer", "navigation.top", "search.highlight"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Dark"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Light"
"""


def flat(entries: list[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """Every page of the navigation with its title."""
    for title, target in entries:
        yield from flat(target) if isinstance(target, list) else [(title, target)]


def assemble(folder: Path) -> None:
    """All sources of the site, made and kept ones."""
    for part in ("guide", "isa", "pictures"):
        shutil.copytree(ROOT / "docs" / part, folder / part, dirs_exist_ok=True)
    for name in ("*.md", "*.ipynb", "*.css"):
        for page in (ROOT / "docs").glob(name):
            shutil.copy(page, folder / page.name)
    for page, source in FROM_ROOT.items():
        shutil.copy(ROOT / source, folder / page)
    found = decisions.by_instruction(decisions.PAGE.read_text("utf-8"))
    for page in (folder / "isa").glob("*.md"):
        text = _with_decisions(_with_codes(page.read_text("utf-8")), found)
        page.write_text(text, "utf-8")
    gallery = folder / "gallery.md"
    gallery.write_text(_with_sources(gallery.read_text("utf-8")), "utf-8")
    for page in [*folder.glob("*.md"), *(folder / "guide").glob("*.md")]:
        page.write_text(_linked(page.read_text("utf-8"), page.relative_to(folder)), "utf-8")
    _write_diagnostics(folder / "diagnostics")
    _write_examples(folder / "examples")
    (folder / "api.md").write_text(api.page(), "utf-8")


def _with_codes(text: str) -> str:
    """Codes of rules lead to their pages."""
    return re.sub(r"\((PTO-[A-Z]\d{3})\)", r"([\1](../diagnostics/\1.md))", text)


def _with_decisions(text: str, found: dict[str, list[str]]) -> str:
    """Each instruction names the decisions about it."""

    pieces = re.split(r"^(?=##)", text, flags=re.MULTILINE)
    for number, piece in enumerate(pieces):
        name = re.match(r"### (?:pto\.)?(\S+)\n", piece)
        titles = found.get(name[1], []) if name else []
        links = [f"[{t}](../decisions_isa.md#{decisions.anchor(t)})" for t in titles]
        if links:
            pieces[number] = f"{piece.rstrip()}\n\nDecisions: {', '.join(links)}.\n\n"
    return "".join(pieces)


def _with_sources(text: str) -> str:
    """The gallery shows each kernel where the repository links to it."""

    def source(match: re.Match[str]) -> str:
        code = (ROOT / "examples" / "gallery" / match[1]).read_text("utf-8")
        shown = code[code.index("import pto") :].rstrip()
        return f'```python title="examples/gallery/{match[1]}"\n{shown}\n```'

    return re.sub(r"^\[examples/gallery/(\w+\.py)\]\(.*\)$", source, text, flags=re.MULTILINE)


_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def _linked(text: str, page: Path) -> str:
    """Links between files of the repository as links between pages of the site."""
    source = PurePosixPath(FROM_ROOT.get(page.as_posix(), f"docs/{page.as_posix()}"))

    def to_page(match: re.Match[str]) -> str:
        if "://" in match[1]:
            return match[0]
        target = posixpath.normpath((source.parent / match[1]).as_posix())
        return f"]({posixpath.relpath(_page_of(target), page.parent.as_posix())}{match[2] or ''})"

    pieces = _CODE.split(text)
    link = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
    return "".join(p if n % 2 else link.sub(to_page, p) for n, p in enumerate(pieces))


def _page_of(target: str) -> str:
    """The page of the site that shows a file or folder of the repository."""
    from_root = {source: page for page, source in FROM_ROOT.items()}
    folders = {"examples": "examples/index.md", "pto/explain": "diagnostics/index.md"}
    known = from_root | folders | {"examples/gallery": "gallery.md"}
    if target in known:
        return known[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    example = re.fullmatch(r"examples/(\w+)(?:\.(?:py|pto)|/\w+\.py)?", target)
    if example is None:
        raise LookupError(f"no page of the site shows {target}")
    return f"examples/{example[1]}.md"


def _write_diagnostics(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Diagnostics", "", "Every finding has a code; `pto explain CODE` shows its page."]
    for letter, area in AREAS.items():
        lines += ["", f"## {letter}: {area}", "", "| code | finding |", "| --- | --- |"]
        for code in (code for code in explain.codes() if code[4] == letter):
            page = explain.page(code)
            lines.append(f"| [{code}]({code}.md) | {explain.title(page)} |")
            (folder / f"{code}.md").write_text(page, "utf-8")
    (folder / "index.md").write_text("\n".join(lines) + "\n", "utf-8")


def _write_examples(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Examples", "", "Each is run by the tests on the profiles it names.", ""]
    lines += ["| example | what it is |", "| --- | --- |"]
    for path in sorted((ROOT / "examples").iterdir()):
        if path.stem in ("__init__", "demo") or not _is_example(path):
            continue
        text = _text_of(path)
        about = re.search(r'"""(.*?)(?:"""|\n\n)|// (.*?)\n', text, re.DOTALL)
        words = " ".join((about[1] or about[2]).split()) if about else ""
        language = "mlir" if path.suffix == ".pto" else "python"
        page = f"# {path.name}\n\n```{language}\n{text.rstrip()}\n```\n"
        (folder / f"{path.stem}.md").write_text(page, "utf-8")
        lines.append(f"| [{path.stem}]({path.stem}.md) | {words} |")
    (folder / "index.md").write_text("\n".join(lines) + "\n", "utf-8")


def _is_example(path: Path) -> bool:
    """A file, or a package of several that can be run."""
    return path.suffix in (".py", ".pto") or (path / "__main__.py").exists()


def _text_of(path: Path) -> str:
    """Of a package all files, one after another."""
    if path.is_file():
        return path.read_text("utf-8")
    files = sorted(path.glob("*.py"), key=lambda each: (each.stem == "__main__", each.name))
    return "\n\n".join(f"# {each.name}\n{each.read_text('utf-8')}" for each in files)


def _toml(entries: list[tuple[str, Any]]) -> str:
    """The navigation as TOML."""
    cells = (
        f'{{ "{title}" = {_toml(target)} }}'
        if isinstance(target, list)
        else f'{{ "{title}" = "{target}" }}'
        for title, target in entries
    )
    return f"[{', '.join(cells)}]"


def main() -> None:
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    SOURCES.mkdir(parents=True)
    assemble(SOURCES)
    config = SOURCES.with_suffix(".toml")
    config.write_text(CONFIG.format(docs=SOURCES.name, site="site", nav=_toml(NAVIGATION)))
    builder = Path(sys.executable).with_name("zensical")
    done = subprocess.run([builder, "build", "--strict", "-f", config], cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    (SOURCES.parent / "site").replace(SITE)  # the builder writes beside its settings only
    print(f"open {SITE / 'index.html'}")


if __name__ == "__main__":
    main()
