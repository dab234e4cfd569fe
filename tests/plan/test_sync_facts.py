"""What `pto sync` makes of instructions of several pipes, judged by facts that are not its input.

`replay.py` takes pipes from the table of the headers, not from rows, and orders accesses itself.
"""

from __future__ import annotations

import pytest

from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.plan.memory import addressed
from pto.plan.sync import insert
from pto.target import profile
from tests.plan.replay import races

_TYPES = """
!v = !pto.tensor_view<16x32xf32>
!p = !pto.partition_tensor_view<16x32xf32>
!vi = !pto.tensor_view<1x16xi32>
!pi = !pto.partition_tensor_view<1x16xi32>
!ve = !pto.tensor_view<16x32xi32>
!pe = !pto.partition_tensor_view<16x32xi32>
!t = !pto.tile_buf<vec, 16x32xf32>
!r = !pto.tile_buf<vec, 1x32xi32>
!i = !pto.tile_buf<vec, 1x16xi32>
!e = !pto.tile_buf<vec, 16x32xi32>
!c = !pto.tile_buf<vec, 16x1xf32, blayout=col_major>
!s = !pto.tile_buf<vec, 2x32xf32>
"""
_VIEWS = {"x": "v p", "y": "v p", "z": "v p", "i": "vi pi", "e": "ve pe"}
_SIZES = {"v": ("%c16", "%c32", "f32"), "vi": ("%c1", "%c16", "i32"), "ve": ("%c16", "%c32", "i32")}
_PLACES = {"a": "t", "b": "t", "d": "t", "ramp": "r", "ramp2": "r", "ix": "i", "ex": "e",
           "col": "c", "tmp": "t", "stage": "t", "pong": "t", "small": "s"}  # fmt: skip


def program(arch: str, body: str) -> Module:
    """A kernel of these instructions, with views `%px` of `%x` and tiles by their names."""
    lines = []
    for name, types in _VIEWS.items():
        view, part = types.split()
        rows, cols, _ = _SIZES[view]
        lines += [
            f"%v{name} = pto.make_tensor_view %{name}, shape = [{rows}, {cols}],"
            f" strides = [{cols}, %c1] : !{view}",
            f"%p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0],"
            f" sizes = [{rows}, {cols}] : !{view} -> !{part}",
        ]
    used = [
        name
        for name in _PLACES
        if f"%{name} " in body or f"%{name}," in body or f"%{name})" in body
    ]
    lines += [f"%{name} = pto.alloc_tile : !{_PLACES[name]}" for name in used]
    args = ", ".join(f"%{n}: !pto.ptr<{_SIZES[k.split()[0]][2]}>" for n, k in _VIEWS.items())
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 16, 32))
    text = f"""{_TYPES}
module attributes {{pto.target_arch = "{arch}"}} {{
func.func @k({args}) {{
{constants}
%n = arith.constant 3 : i32
%f = arith.constant 3.0 : f32
{chr(10).join(lines)}
{body}
return
}}
}}
"""
    return parse(text)


_LOAD = "pto.tload ins(%p{1} : !p) outs(%{0} : !t)\n"
_STORE = "pto.tstore ins(%{0} : !t) outs(%p{1} : !p)\n"
_SCALE = "pto.tmuls ins(%{0}, %f : !t, f32) outs(%{1} : !t)\n"
_IDS = "pto.tload ins(%pi : !pi) outs(%ix : !i)\n"
_EACH = "pto.tload ins(%pe : !pe) outs(%ex : !e)\n"
_ROW, _ELEM = ("{coalesce = #pto<coalesce " + w + ">}\n" for w in ("row", "elem"))
BODIES = {
    "ramp": "pto.tci ins(%n : i32) outs(%ramp : !r)\n"
    "pto.tmuls ins(%ramp, %n : !r, i32) outs(%ramp2 : !r)\n"
    "pto.tci ins(%n : i32) outs(%ramp : !r)\n"
    "pto.tadd ins(%ramp, %ramp2 : !r, !r) outs(%ramp : !r)\n",
    "rows by index": _IDS
    + "pto.mgather ins(%px, %ix : !p, !i) outs(%d : !t) "
    + _ROW
    + _SCALE.format("d", "a")
    + _STORE.format("a", "y")
    + _IDS
    + "pto.mgather ins(%px, %ix : !p, !i) outs(%d : !t) "
    + _ROW
    + _STORE.format("d", "z"),
    "elements by index": _EACH
    + "pto.mgather ins(%px, %ex : !p, !e) outs(%d : !t) "
    + _ELEM
    + _STORE.format("d", "y")
    + _SCALE.format("d", "d")
    + _STORE.format("d", "z"),
    "scatter rows": _LOAD.format("a", "x")
    + _IDS
    + _SCALE.format("a", "b")
    + "pto.mscatter ins(%b, %ix : !t, !i) outs(%py : !p) "
    + _ROW
    + _LOAD.format("b", "y")
    + _STORE.format("b", "z"),
    "scatter elements": _LOAD.format("a", "x")
    + _EACH
    + "pto.mscatter ins(%a, %ex : !t, !e) outs(%py : !p) "
    + _ELEM
    + _LOAD.format("a", "y")
    + _STORE.format("a", "z"),
    "put": _LOAD.format("a", "x")
    + _SCALE.format("a", "b")
    + _STORE.format("b", "y")
    + "pto.comm.tput(%pz, %py, buf(%stage) : !p, !p, !t)\n"
    + _LOAD.format("d", "z")
    + _SCALE.format("d", "stage")
    + _STORE.format("stage", "y"),
    "get through two tiles": _LOAD.format("a", "x")
    + _STORE.format("a", "y")
    + "pto.comm.tget(%pz, %py, buf(%stage, %pong) : !p, !p, !t, !t)\n"
    + _SCALE.format("pong", "stage")
    + _STORE.format("stage", "x"),
    "gather": _LOAD.format("a", "x")
    + _STORE.format("a", "y")
    + "pto.comm.tgather(%pz, recv(%stage), group(%py) : !p, !t, !p) {root = 0 : i32}\n"
    + _LOAD.format("b", "z")
    + _SCALE.format("b", "b")
    + _STORE.format("b", "x"),
    "reduce": _LOAD.format("a", "x")
    + _STORE.format("a", "y")
    + "pto.comm.treduce(%pz, %tmp, recv(%stage), group(%py) : !p, !t, !t, !p)"
    " {reduceOp = #pto<reduce_op sum>, root = 0 : i32}\n"
    + _SCALE.format("tmp", "d")
    + _STORE.format("d", "x"),
    "working space": _LOAD.format("a", "x")
    + _SCALE.format("a", "b")
    + _STORE.format("b", "y")
    + "pto.trowsum ins(%a, %tmp : !t, !t) outs(%col : !c)\n"
    + "pto.trowexpand ins(%col : !c) outs(%d : !t)\n"
    + _STORE.format("d", "z")
    + "pto.trem ins(%a, %d, %small : !t, !t, !s) outs(%b : !t)\n"
    + _STORE.format("b", "x"),
}
CASES = [
    pytest.param(arch, name, id=f"{name}-{arch}")
    for name in BODIES
    for arch in ("a2a3", "a5")
    if (arch, name) != ("a5", "working space")
]


def synced(arch: str, name: str) -> str:
    target = profile(arch)
    return print_module(addressed(insert(program(arch, BODIES[name]), target), target))


@pytest.mark.parametrize(("arch", "name"), CASES)
def test_what_pto_sync_makes_is_ordered_by_the_facts(arch: str, name: str):
    assert races(parse(synced(arch, name)), arch) == []


@pytest.mark.parametrize(("arch", "name"), CASES)
def test_no_flag_and_no_barrier_of_it_is_needless_by_the_facts(arch: str, name: str):
    """Each alone is taken out, a set together with its wait: the facts then leave a race."""
    lines = synced(arch, name).splitlines()
    kept = [n for n, line in enumerate(lines) if "wait_flag" in line or "pto.barrier" in line]
    assert kept, "it needs some"
    for at in kept:
        gone = {at, *_setter(lines, at)}
        text = "\n".join(line for n, line in enumerate(lines) if n not in gone)
        assert races(parse(text), arch), lines[at]


def _setter(lines: list[str], wait: int) -> list[int]:
    """The set that a wait takes: the last one before it of the same flag."""
    wanted = lines[wait].replace("wait_flag", "set_flag").strip()
    return [n for n in range(wait) if lines[n].strip() == wanted][-1:]


def test_a_program_without_flags_races_by_the_facts():
    """The oracle itself: each of these programs needs order."""
    for arch, name in (case.values for case in CASES):
        assert races(
            addressed(program(str(arch), BODIES[str(name)]), profile(str(arch))), str(arch)
        )
