"""The direction of imports: a module knows only the layers below it. Read from the syntax alone."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pto"
FILES = sorted(PACKAGE.rglob("*.py"))

LAYERS = {
    "core": 0,
    "target": 1,
    "isa": 2,
    "ir": 3,
    "verify": 4,
    "transform": 5,
    "plan": 6,
    "prove": 7,
    "run": 8,
    "observe": 9,
    "optimize": 9,
    "cluster": 9,
    "lang": 10,
    "gym": 10,
    "cxx": 10,
    "suite": 10,
    "view": 11,
    "graphs": 11,
    "judging": 11,
    "cli": 12,
    "lsp": 12,
    "mcp": 12,
    "pytest_plugin": 12,
    "__init__": 13,
    "__main__": 13,
}
HEAVY = {"rich", "matplotlib", "llvmlite", "ray"}
LONGEST_FILE = 600


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def layer_of(module: str) -> str:
    """`pto.core.tile` -> `core`; `pto` itself -> `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """Every module `tree` imports, as absolute names (`from pto import core` -> `pto.core`)."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            kept = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*kept, *([node.module] if node.module else [])])
            if base == "pto":
                yield from (f"pto.{alias.name}" for alias in node.names)
            else:
                yield base


def wrong_way(module: str, imported: str) -> bool:
    if imported == "pto.__version__" or not (imported == "pto" or imported.startswith("pto.")):
        return False
    return LAYERS.get(layer_of(imported), LAYERS["__init__"]) > LAYERS[layer_of(module)]


def is_top_level_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


@pytest.mark.parametrize("layer", LAYERS)
def test_modules_of_a_layer_import_only_from_lower_layers(layer: str):
    paths = [path for path in FILES if layer_of(module_of(path)) == layer]
    assert paths, f"the layer {layer} has no file"
    for path in paths:
        module = module_of(path)
        found = imports_of(tree_of(path), module, path.name == "__init__.py")
        assert [name for name in found if wrong_way(module, name)] == [], path


def test_every_module_belongs_to_a_layer():
    layers = {layer_of(module_of(path)) for path in FILES}
    assert layers <= set(LAYERS), "a new layer takes its place in LAYERS and in the design"


def beside(module: str, imported: str) -> str | None:
    """The other layer of the same rank that `imported` belongs to."""
    own, other = layer_of(module), layer_of(imported)
    same = imported.startswith("pto.") and LAYERS.get(other) == LAYERS[own]
    return other if same and other != own else None


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Layers that import each other in a circle; empty if there is none."""

    def search(at: str, path: list[str]) -> list[str]:
        if at in path:
            return [*path[path.index(at) :], at]
        found = (search(each, [*path, at]) for each in sorted(edges.get(at, ())))
        return next(filter(None, found), [])

    return next(filter(None, (search(layer, []) for layer in sorted(edges))), [])


def test_layers_of_one_rank_do_not_import_each_other_in_cycles():
    edges: dict[str, set[str]] = {}
    for path in FILES:
        module = module_of(path)
        for name in imports_of(tree_of(path), module, path.name == "__init__.py"):
            other = beside(module, name)
            if other is not None:
                edges.setdefault(layer_of(module), set()).add(other)
    assert edges["cli"] >= {"lsp", "mcp"}  # the search sees imports inside functions
    assert cycle(edges) == []


def test_a_cycle_is_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_the_map_in_contributing_has_every_layer_with_its_rank():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = {name: int(rank) for rank, name in re.findall(r"^\| (\d+) \| `(\w+)` \|", text, re.M)}
    assert listed == {name: rank for name, rank in LAYERS.items() if not name.startswith("__")}


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda p: p.name)
def test_core_imports_nothing_heavy_at_the_top(path: Path):
    tree = tree_of(path)
    top = ast.Module([node for node in tree.body if is_top_level_import(node)], [])
    found = {name.split(".")[0] for name in imports_of(top, module_of(path), False)}
    assert found & HEAVY == set()


def test_no_file_outgrows_one_idea():
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in FILES}
    assert {str(p): n for p, n in lengths.items() if n > LONGEST_FILE} == {}


@pytest.mark.parametrize(
    ("module", "source", "verdict"),
    [
        ("pto.core.tile", "from pto.core.layout import Layout", False),
        ("pto.core.tile", "from pto.target import a5", True),
        ("pto.core.tile", "def f():\n    import pto.cli.main", True),
        ("pto.core.tile", "from .. import isa", True),
        ("pto.core.tile", "from ..run.device import Device", True),
        ("pto.isa.tile.move", "from pto import target", False),
        ("pto.target.a5", "import pto.isa", True),
        ("pto.verify", "from pto.ir.graph import Module", False),
        ("pto.ir.text.parser", "from pto.verify import verify", True),
        ("pto.cli.main", "from pto import __version__", False),
        ("pto.isa.tile.move", "import pto", True),
        ("pto.isa.tile.move", "from pto import no_such_layer", True),
        ("pto.isa.tile.move", "import ptolemy.cli", False),
        ("pto.view.tile_picture", "from pto.cli import console", True),
    ],
)
def test_the_rule_itself(module: str, source: str, verdict: bool):
    names = imports_of(ast.parse(source), module, False)
    assert any(wrong_way(module, name) for name in names) is verdict
