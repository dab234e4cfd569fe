"""Order and deadlock of a cube and a vector function with queues between them, for every size.

Each program with a planted fault has a correct twin. What the formulas prove is compared with
watched runs of several sizes: a fault that a run shows is never proved absent.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.parser import parse
from pto.observe.claims import contradicted
from pto.observe.fixes.mutations import changes
from pto.observe.sanitize import sanitize
from pto.plan.calls import entry_functions
from pto.plan.sync import ordered
from pto.prove.questions import Answer, order_answers
from pto.prove.values import LaunchSymbols, Values
from pto.target.profile import profile
from tests.random_agents import agents_program

NZ = "blayout=col_major, slayout=row_major"
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 8, 9, 16))
TYPES = f"""
!l1 = !pto.tile_buf<mat, 16x16xf16, {NZ}>
!left = !pto.tile_buf<left, 16x16xf16, {NZ}>
!right = !pto.tile_buf<right, 16x16xf16, slayout=col_major>
!acc = !pto.tile_buf<acc, 16x16xf32, {NZ}, fractal=1024>
!vec = !pto.tile_buf<vec, 16x16xf32>
!in = !pto.tensor_view<16x16xf16>
!out = !pto.tensor_view<16x16xf32>
"""
ARGUMENTS = "%x: !pto.ptr<f16, gm>, %y: !pto.ptr<f32, gm>, %s: !pto.ptr<i32, gm>, %n: index"
PUSH = """
pto.tmatmul ins(%a, %b : !left, !right) outs(%c : !acc)
pto.tpush_to_aiv(%c : !acc) {split = 0}
"""
POP = "%t = pto.tpop_from_aic {split = 0} -> !vec"
USE = "pto.tadds ins(%t, %one : !vec, f32) outs(%sum : !vec)"
FREE = "pto.tfree_from_aic {split = 0}"
STORE = "pto.tstore ins(%sum : !vec) outs(%dst : !out)"
TAKE = "\n".join((POP, USE, FREE, STORE))


def loop(body: str, to: str = "%n", name: str = "%i") -> str:
    return f"scf.for {name} = %c0 to {to} step %c1 {{\n{body}\n}}"


def when(body: str, value: str, than: str = "%c2", name: str = "%if") -> str:
    return f"{name} = arith.cmpi sgt, {value}, {than} : index\nscf.if {name} {{\n{body}\n}}"


def program(cube: str, vector: str, slots: int = 8, theirs: int = 0) -> str:
    """A cube function and a vector function with a queue from one to the other."""
    begin = f"{CONSTANTS}\n%zero = arith.constant 0 : i32"
    opened = "dir_mask = 1, slot_size = 1024, slot_num = {}"
    buffers = "(c2v_consumer_buf = %slots : i32, v2c_consumer_buf = %zero : i32)"
    where = "location = #pto.address_space<vec>, auto = true"
    reserved = f'pto.reserve_buffer {{name = "slots", size = {1024 * slots}, {where}}} -> i32'
    return f"""{TYPES}
module attributes {{pto.target_arch = "a5"}} {{
func.func @cube({ARGUMENTS}) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
{begin}
%src = pto.make_tensor_view %x, shape = [%c16, %c16], strides = [%c16, %c1] : !in
%slots = pto.import_reserved_buffer {{name = "slots", peer_func = @vector}} -> i32
pto.aic_initialize_pipe {{{opened.format(slots)}}} {buffers}
%l1 = pto.alloc_tile : !l1
%a = pto.alloc_tile : !left
%b = pto.alloc_tile : !right
%c = pto.alloc_tile : !acc
pto.tload ins(%src : !in) outs(%l1 : !l1)
pto.tmov ins(%l1 : !l1) outs(%a : !left)
pto.tmov ins(%l1 : !l1) outs(%b : !right)
{cube}
return
}}
func.func @vector({ARGUMENTS}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{begin}
%one = arith.constant 1.0 : f32
%dst = pto.make_tensor_view %y, shape = [%c16, %c16], strides = [%c16, %c1] : !out
%slots = {reserved}
pto.aiv_initialize_pipe {{{opened.format(theirs or slots)}}} {buffers}
%sum = pto.alloc_tile : !vec
{vector}
return
}}
}}"""


def answers(text: str) -> dict[str, Answer]:
    module = ordered(parse(text), profile("a5"))
    found = order_answers(entry_functions(module, None), profile("a5"))
    return {answer.question: answer for answer in found}


def is_proved(text: str) -> bool:
    return {answer.verdict for answer in answers(text).values()} == {"proved"}


def runs_clean(text: str, sizes: tuple[int, ...] = (0, 1, 2, 3, 4, 9, 17)) -> bool:
    """True if no run reports a fault of order, or does not end."""
    clean = True
    for n in sizes:
        module = ordered(parse(text), profile("a5"))
        numbers = np.arange(16, dtype=np.int32) % 4
        args: list[Any] = [np.ones(256, np.float16), np.zeros(256, np.float32), numbers, n]
        try:
            found = list(sanitize(module, args=args, check=False, fixes=False, timeout=5).findings)
        except PtoError as error:
            found = list(error.diagnostics)
        wrong = [d.code for d in found if d.code.startswith(("PTO-R00", "PTO-R01", "PTO-D"))]
        clean = clean and not set(wrong) - {"PTO-R014", "PTO-R015"}
    return clean


THREE = "\n".join([PUSH] * 3), "\n".join(TAKE.replace("%t", f"%t{k}") for k in range(3))
HELD = "\n".join([*(POP.replace("%t", f"%t{k}") for k in range(3)), *[FREE] * 3])
LENGTH = """%w = pto.load_scalar %s[%c3] : !pto.ptr<i32, gm> -> i32
%m = arith.index_cast %w : i32 to index
"""
CORRECT = {
    "any number of tiles": program(loop(PUSH), loop(TAKE)),
    "a ring of two slots": program(loop(PUSH), loop(TAKE), slots=2),
    "a ring of one slot": program(loop(PUSH), loop(TAKE), slots=1),
    "three tiles, one after the other": program(*THREE),
    "a loop beside three pushes": program(THREE[0], loop(TAKE, "%c3")),
    "one tile is pushed early": program(
        PUSH + loop(PUSH), loop(TAKE) + "\n" + TAKE.replace("%t", "%u")
    ),
    "the same condition on both sides": program(when(PUSH, "%n"), when(TAKE, "%n")),
    "a condition inside of a loop": program(loop(when(PUSH, "%i")), loop(when(TAKE, "%i"))),
    "the same condition twice": program(
        when(PUSH, "%n") + when(PUSH, "%n", name="%again"),
        when(TAKE + TAKE.replace("%t", "%u"), "%n"),
    ),
    "a tile on either way": program(
        f"%if = arith.cmpi sgt, %n, %c2 : index\nscf.if %if {{\n{PUSH}\n}} else {{\n{PUSH}\n}}",
        TAKE,
    ),
    "a length from memory": program(LENGTH + loop(PUSH, "%m"), LENGTH + loop(TAKE, "%m")),
    "three slots at once": program(loop(THREE[0]), loop(HELD), slots=4),
    "loops of different bounds": program(
        loop(PUSH),
        "%end = arith.addi %n, %c4 : index\n" + loop(TAKE, "%end").replace("%c0 to", "%c4 to"),
    ),
}
FAULTS = {
    "no push": program(loop(""), loop(TAKE)),
    "one push too few": program(loop(PUSH), loop(TAKE) + "\n" + TAKE.replace("%t", "%u")),
    "one pop too few": program(loop(PUSH) + PUSH, loop(TAKE)),
    "another number of iterations": program(
        loop(PUSH), "%end = arith.addi %n, %c1 : index\n" + loop(TAKE, "%end")
    ),
    "twice as many pushes": program(loop(PUSH + PUSH), loop(TAKE)),
    "a slot is given back before it is read": program(
        loop(PUSH), loop("\n".join((POP, FREE, USE, STORE)))
    ),
    "slots are never given back": program(loop(PUSH), loop("\n".join((POP, USE, STORE)))),
    "a slot is given back twice": program(loop(PUSH), loop(TAKE + "\n" + FREE)),
    "a push on one way only": program(when(PUSH, "%n"), TAKE),
    "another condition": program(when(PUSH, "%n"), when(TAKE, "%n", "%c3")),
    "the opposite condition": program(when(PUSH, "%n"), when(TAKE, "%n").replace("sgt", "sle")),
    "a condition of another iteration": program(
        loop(when(PUSH, "%i")), loop("%k = arith.addi %i, %c1 : index\n" + when(TAKE, "%k"))
    ),
    "the ends have different rings": program(loop(PUSH), loop(TAKE), slots=8, theirs=4),
    "more slots at once than there are": program(loop(THREE[0]), loop(HELD), slots=2),
    "no iteration leaves a tile": program(PUSH, loop(TAKE, "%c1").replace("%c1 step", "%n step")),
    "a length that the kernel writes": program(
        LENGTH + loop(PUSH, "%m"),
        LENGTH.replace("%w =", "pto.store_scalar %zero, %s[%c3] : !pto.ptr<i32, gm>, i32\n%w =")
        + loop(TAKE, "%m"),
    ),
    "lengths from different places": program(
        LENGTH + loop(PUSH, "%m"), LENGTH.replace("%c3", "%c2") + loop(TAKE, "%m")
    ),
}


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_program_is_proved(name: str) -> None:
    assert is_proved(CORRECT[name]), answers(CORRECT[name])
    assert runs_clean(CORRECT[name])


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_not_proved_absent(name: str) -> None:
    assert not is_proved(FAULTS[name])


def test_a_length_that_the_kernel_writes_may_be_another_one_at_the_other_end() -> None:
    """The store itself is a fault of order; that the ends differ is one of deadlock."""
    assert answers(CORRECT["a length from memory"])["deadlock"].verdict == "proved"
    assert answers(FAULTS["a length that the kernel writes"])["deadlock"].verdict == "unknown"


def test_most_planted_faults_are_shown_by_a_run() -> None:
    """Left out: a tile that is left in a queue, which no run reports."""
    silent = [name for name, text in FAULTS.items() if runs_clean(text)]
    assert silent == ["one pop too few", "another condition", "lengths from different places"]


def test_sub_blocks_that_store_to_the_same_bytes() -> None:
    """Each sub-block has its half of the tile; both store it, in one place or in two."""
    tile = "!pto.tile_buf<vec, 8x16xf32>"
    half = TAKE.replace("!vec", tile).replace("split = 0", "split = 1")
    part = "!pto.partition_tensor_view<8x16xf32>"
    place = (
        "%sub = pto.get_subblock_idx\n%at = arith.index_cast %sub : i64 to index\n"
        "%row = arith.muli %at, %c8 : index\n"
        "%own = pto.partition_view %dst, offsets = [%row, %c0], sizes = [%c8, %c16]"
        f" : !out -> {part}\n"
    )
    text = program(loop(PUSH.replace("split = 0", "split = 1")), place + loop(half))
    text = text.replace("%sum = pto.alloc_tile : !vec", f"%sum = pto.alloc_tile : {tile}")
    text = text.replace("outs(%dst : !out)", f"outs(%own : {part})")
    assert is_proved(text) and runs_clean(text, (0, 1, 3))
    same = text.replace("offsets = [%row,", "offsets = [%c0,")
    assert answers(same)["order"].verdict == "unknown" and not runs_clean(same, (1,))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_and_their_mutants_are_never_proved_wrongly(seed: int) -> None:
    rng = random.Random(seed)
    drawn, target = agents_program(rng), profile("a5")
    module = ordered(drawn.module, target)
    functions = entry_functions(module, None)

    def findings() -> list[Diagnostic]:
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in drawn.args]
        options: dict[str, Any] = {"check": False, "fixes": False, "timeout": 5}
        try:
            return list(sanitize(module, args=args, blocks=drawn.blocks, **options).findings)
        except PtoError as error:
            return list(error.diagnostics)

    assert contradicted(functions, target, findings()) == []
    every = list(changes(functions))
    for change in rng.sample(every, min(4, len(every))):
        with change.edit():
            assert contradicted(functions, target, findings()) == [], (change.kind, change.op.loc)


def test_valid_rows_and_columns_are_different_numbers() -> None:
    """Also before and after a change of the region, although each query is pure."""
    tile = "!pto.tile_buf<vec, 16x16xf32, valid=?x?>"
    text = f"""module {{ func.func @f(%n: index) {{
    %t = pto.alloc_tile valid_row = %n valid_col = %n : {tile}
    %r, %c = pto.get_validshape %t : {tile}
    %before = pto.tile_valid_rows %t : {tile} -> index
    pto.set_validshape %t, %c, %n : {tile}
    %after = pto.tile_valid_rows %t : {tile} -> index
    return }} }}"""
    (function,) = entry_functions(parse(text), None)
    values = Values(LaunchSymbols(function), checks=False)
    read = [op for op in function.walk() if "valid" in op.name and op.results]
    results = [result for op in read for result in op.results]
    assert len({values.number(result) for result in results}) == len(results) == 4
