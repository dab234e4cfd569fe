"""Use lists: they name the operations that use a value, whatever a program goes through."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pto
from examples.softmax import softmax_rows
from pto.core.errors import PtoError
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation, Value
from pto.ir.text.parser import parse, parse_file
from pto.observe.fixes.mutations import changes
from pto.plan.sync import insert
from pto.target.facts import Profile
from pto.target.profile import profile
from pto.transform.cores import vector_on_first_sub_block
from pto.transform.schedule import PASSES, ProgramLaunch, scheduled, step
from pto.transform.scratch import complete
from pto.transform.separate import separate_all

ROOT = Path(__file__).parents[2]
PROGRAM = """func.func @f(%a: index, %b: index) {
  %s = arith.addi %a, %a : index
  %t = arith.muli %s, %b : index
  %u = arith.muli %s, %t : index
  return
}"""
BRANCHES = """func.func @f(%n: index, %c: i1) {
  %one = arith.constant 1 : index
  cf.cond_br %c, ^a, ^b
^a:
  %x = arith.addi %n, %one : index
  cf.br ^end(%x : index)
^b:
  cf.br ^end(%n : index)
^end(%r: index):
  %y = arith.addi %r, %one : index
  return
}"""


def require_right(module: Module) -> None:
    """Every use list has exactly the operations of the program, once for each operand."""
    found: dict[Value, Counter[Operation]] = {}
    for op in module.walk():
        for value in (*op.results, *(arg for block in op.blocks() for arg in block.args)):
            found.setdefault(value, Counter())
        for value in op.operands:
            found.setdefault(value, Counter())[op] += 1
        assert all(each.parent is block for block in op.blocks() for each in block.ops)
    assert {value: Counter(value.uses) for value in found} == found


def made() -> tuple[Module, dict[str, Operation], list[Value]]:
    module = parse(PROGRAM)
    (function,) = module.functions()
    ops = {op.results[0].name: op for op in function.walk() if op.results}
    return module, ops, function.regions[0].block.args


def test_uses_count_each_operand():
    _, ops, (a, b) = made()
    assert (a.uses, b.uses) == ([ops["s"]] * 2, [ops["t"]])
    assert ops["s"].results[0].uses == [ops["t"], ops["u"]]
    assert ops["u"].results[0].uses == []


def test_another_operand_moves_one_use():
    module, ops, (a, b) = made()
    ops["s"].set_operand(1, b)
    assert (ops["s"].operands, a.uses, b.uses) == ([a, b], [ops["s"]], [ops["t"], ops["s"]])
    require_right(module)


def test_all_uses_are_replaced():
    module, ops, (a, b) = made()
    ops["s"].results[0].replace_all_uses(a)
    assert (ops["t"].operands, ops["u"].operands) == ([a, b], [a, ops["t"].results[0]])
    assert ops["s"].results[0].uses == []
    require_right(module)


def test_an_erased_operation_uses_nothing():
    module, ops, (_, b) = made()
    ops["u"].erase()
    assert ops["t"].results[0].uses == [] and ops["u"].parent is None
    ops["t"].erase()
    assert b.uses == []
    require_right(module)


def test_operations_move_and_take_groups_of_operands():
    text = """func.func @f(%n: index) {
  %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32, valid=?x?>
  %at = arith.constant 0 : i64
  return
}"""
    module = parse(text)
    (function,) = module.functions()
    tile, at, end = function.regions[0].block.ops
    (n,) = function.regions[0].block.args
    at.move_before(tile)
    tile.set_group("valid_row", [n])
    tile.set_group("valid_col", [n])
    tile.set_group("addr", at.results)
    assert (tile.operands, tile.segments) == ([at.results[0], n, n], (1, 1, 1))
    tile.set_group("addr", [])
    assert (tile.operands, tile.segments, at.results[0].uses) == ([n, n], (0, 1, 1), [])
    tile.move_after(at)
    assert function.regions[0].block.ops == [at, tile, end]
    require_right(module)


def test_blocks_that_become_branches_leave_no_use_behind():
    require_right(parse(BRANCHES))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests/pto/good").glob("*.pto")), ids=lambda p: p.stem
)
def test_uses_of_programs_that_are_read_copied_and_ordered(path: Path):
    module = parse_file(path)
    require_right(module)
    require_right(copied(module))
    try:
        ordered = insert(module, profile("a5"))
    except PtoError:  # it orders its pipes itself, or needs another profile
        return
    require_right(ordered)


@pto.kernel
def sums(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """Tiles that loops and branches hand on, a loop that is left early, numbers to be joined."""
    total = pto.load(x[0:16, :], 16, 64)
    for i in pto.range(x.shape[0] // 16):
        t = pto.exp(pto.load(x[i * 16 :, :], 16, 64) + 1.0)
        total = total + t if i > 2 else total - t
        if i * 16 == 48:
            break
    pto.store(y[0:16, :], total)


@pto.kernel
def both_cores(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """A product in a loop, whose result the vector core completes."""
    for i in pto.range(x.shape[0] // 64):
        rows = pto.load(x[i * 64 :, :], 64, 64)
        pto.store(y[i * 64 :, :], pto.relu(pto.dot(rows, rows)))


@pytest.mark.parametrize("kernel", [sums, softmax_rows], ids=["sums", "softmax"])
def test_uses_of_traced_kernels(kernel: pto.Kernel):
    module = kernel.module(*[np.zeros((100, 64), np.float32)] * 2)
    assert sum(1 for _ in module.walk()) > 15
    require_right(module)
    require_right(insert(module, profile("a2a3")))


def on_first_sub_block(module: Module, _: Profile) -> Module:
    for function in module.functions():
        vector_on_first_sub_block(function)
    return module


def mutated(module: Module, _: Profile) -> Module:
    """Make and undo every mutation."""
    for change in changes([f for f in module.functions() if f.has_body]):
        with change.edit():
            require_right(module)
        require_right(module)
    return module


def on_schedule(module: Module, _: Profile) -> Module:
    steps = [step(f"{name}=2") for name in PASSES]
    return scheduled(ProgramLaunch(module, 8), steps)[0].module


TRANSFORMS = {
    "on_first_sub_block": on_first_sub_block,
    "separate": lambda module, chip: separate_all(module, chip).module,
    "scratch": complete,
    "mutated": mutated,
    "on_schedule": on_schedule,
}
MIXED = """func.func @f(%a: !pto.ptr<f32>, %n: index) attributes {pto.entry} {
  pto.section.vector {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %two = arith.constant 2.0 : f32
    scf.for %i = %c0 to %n step %c1 {
      %j = arith.addi %i, %c1 : index
      pto.store_scalar %two, %a[%j] : !pto.ptr<f32>, f32
    }
  }
  pto.section.cube {
  }
  return
}"""


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_uses_of_programs_that_are_transformed(transform: Callable[[Module, Profile], Module]):
    module = parse(MIXED)
    require_right(transform(module, profile("a5")))
    traced = [(both_cores, "a2a3"), (both_cores, "a5"), (sums, "a5")]
    for kernel, chip in traced:
        module = kernel.module(*[np.zeros((128, 64), np.float32)] * 2)
        require_right(transform(copied(module), profile(chip)))


CHANGES = {"append", "insert", "remove", "pop", "extend", "clear"}
OWN = {"ir/graph.py", "lsp/document.py", "ir/text/affine.py"}  # the last one has a list of its own


def test_programs_change_by_methods_that_keep_use_lists():
    """`op.operands` and `block.ops` are changed in `ir/graph.py`; a reader fills new operations."""
    found: list[str] = []
    for layer in ("ir", "verify", "transform", "plan", "observe", "lang", "lsp"):
        for path in sorted((ROOT / "pto" / layer).rglob("*.py")):
            name = path.relative_to(ROOT / "pto").as_posix()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if name not in OWN and _changes(node):
                    found.append(f"{name}:{getattr(node, 'lineno', 0)}")
    assert found == []


def _changes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in CHANGES and _is_list(node.func.value)
    if isinstance(node, ast.Delete | ast.Assign):
        targets = [t for t in node.targets if isinstance(t, ast.Subscript)]
        return any(_is_list(t.value) for t in targets)
    return False


def _is_list(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("ops", "operands")
