"""Every lane function of logical vectors in compiled code, on every type its row takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.core.memory import Space
from pto.isa.meaning.kinds import Lane
from pto.isa.row.instr import Instr
from pto.isa.table import rows
from tests.run.jit.bench import BothEngines, edge_values, spelled

_COUNT = 37  # no multiple of anything
_SOME = [n % 3 != 0 for n in range(_COUNT)]
_LOGICAL = [r for r in rows() if any("logical" in o.kind for o in (*r.operands, *r.results))]
_ROWS = [
    r
    for r in _LOGICAL
    if isinstance(r.body, Lane)
    and [x.kind for x in r.results][:1] == ["logical vreg"]
    and r.types.get("a5")
]
_CASES = [(r, spelled(e)) for r in _ROWS for e in sorted(r.types["a5"])]


class Logical(BothEngines):
    def vector(self, name: str, elem: str, values: Any) -> None:
        self.values[name] = values
        self.types[name] = f"!pto.vmi.vreg<{values.size}x{elem}>"

    def lanes(self, name: str, values: Any) -> None:
        self.values[name] = np.array(values, bool)
        self.types[name] = f"!pto.vmi.mask<{len(values)}xpred>"


@pytest.mark.parametrize("row, elem", _CASES, ids=[f"{r.name}-{e}" for r, e in _CASES])
def test_lanes(row: Instr, elem: str) -> None:
    bench, kind, names = Logical(), dtype(elem), list[str]()
    for n, operand in enumerate(row.operands):
        names.append(f"x{n}")
        if operand.kind == "logical mask":
            bench.lanes(f"x{n}", _SOME if operand.name == "mask" else _SOME[::-1])
        elif operand.kind == "logical vreg":
            bench.vector(f"x{n}", elem, edge_values(kind, _COUNT, n))
        else:
            value: Any = 3 if operand.kind == "i16" or not kind.is_float else 1.5
            bench.scalar(f"x{n}", "i16" if operand.kind == "i16" else elem, value)
    given, types = (", ".join(f % n for n in names) for f in ("%%%s", "{%s}"))
    out = "f32" if row.name.endswith("vexpdif") else elem
    made = [
        f"!pto.vmi.{f'vreg<{_COUNT}x{out}' if 'vreg' in r.kind else f'mask<{_COUNT}xpred'}>"
        for r in row.results
    ]
    listed = ", ".join(f"%r{n}" for n in range(len(made)))
    results = "; ".join(f"%r{n} : {type}" for n, type in enumerate(made))
    bench.run(f"{listed} = {row.name} {given} : {types} -> {', '.join(made)}", results=results)


@pytest.mark.parametrize("source, target", [("f32", "f16"), ("bf16", "f32"), ("f32", "i32")])
def test_conversions(source: str, target: str) -> None:
    bench = Logical()
    bench.vector("a", source, edge_values(dtype(source), _COUNT, 3))
    type = f"!pto.vmi.vreg<{_COUNT}x{target}>"
    for more in ("", ' {saturate = "SAT"}', ' {rounding = "Z"}'):
        bench.run(f"%r = pto.vmi.vcvt %a{more} : {{a}} -> {type}", results=f"%r : {type}")


_FORMS = {
    "a run": ("vload %p[%at]", ""),
    "rows": ("vload %p[%at], %k {group = 4}", ""),
    "one a group": ('vload %p[%at], %k {dist_mode = "brc", group = 2}', ""),
    "blocks": ("stride_load %p[%at], %b, %b, %m", ", i16, i16, {m}"),
    "gaps": ("expand_load %p[%at], %m, %v", ", {m}, {v}"),
    "single": ("gather %p[%i], %m, %v", ", {i}, {m}, {v}"),
}


@pytest.mark.parametrize("form", list(_FORMS))
@pytest.mark.parametrize("at", [0, 7, 70_000, -3, 1 << 62])
def test_reads_and_their_limits(form: str, at: int) -> None:
    """Places outside UB are refused by both engines with the same words, but for lanes off."""
    bench, (text, more) = Logical(), _FORMS[form]
    bench.pointer("p", "i32, ub", np.arange(64))
    bench.vector("v", "i32", edge_values(dtype("i32"), 40, 1))
    bench.vector("i", "i32", np.arange(40, dtype=np.int32)[::-1].copy())
    bench.lanes("m", [n % 3 == 1 for n in range(40)])
    bench.scalar("at", "index", at)
    bench.scalar("k", "index", 20)
    bench.scalar("b", "i16", 3)
    type = "!pto.vmi.vreg<40xi32>"
    body = f"%r = pto.vmi.{text} : {{p}}{more} -> {type}"
    if form == "single" or 0 <= at < 64:
        bench.run(body, results=f"%r : {type}")
    else:
        assert bench.fails(body, results=f"%r : {type}") == "PTO-M141"


@pytest.mark.parametrize(
    "text, types",
    [
        ("vstore %v, %p[%at], %m", "{v}, {p}, {m}"),
        ("vstore %v, %v, %p[%at]", "{v}, {v}, {p}"),
        ("vsstb %v, %p[%at], %b, %m", "{v}, {p}, i16, {m}"),
        ("compress_store %v, %p[%at], %m", "{v}, {p}, {m}"),
        ("scatter %v, %p[%i], %m", "{v}, {p}, {i}, {m}"),
        ("group_store %v, %p[%at], %at {num_groups = 5}", "{v}, {p}"),
    ],
)
@pytest.mark.parametrize("at", [3, 70_000])
def test_writes(text: str, types: str, at: int) -> None:
    bench = Logical()
    bench.pointer("p", "i32, ub", np.arange(64))
    bench.vector("v", "i32", edge_values(dtype("i32"), 40, 1))
    bench.vector("i", "i32", np.arange(40, dtype=np.int32) // 2)
    bench.lanes("m", [n < 17 for n in range(40)])
    bench.scalar("at", "index", at)
    bench.scalar("b", "i16", 3)
    body = f"pto.vmi.{text} : {types}"
    if at == 3 or "%at" not in text:
        bench.run(body)
    else:
        assert bench.fails(body) == "PTO-M141"


def test_lanes_that_are_off_may_lie_outside() -> None:
    bench = Logical()
    bench.pointer("p", "i32, ub", np.arange(4))
    bench.vector("v", "i32", np.arange(40, dtype=np.int32))
    bench.lanes("m", [n < 17 for n in range(40)])
    bench.scalar("at", "index", bench.core.memory(Space.UB).size // 4 - 20)
    bench.run("pto.vmi.vstore %v, %p[%at], %m : {v}, {p}, {m}")
    assert bench.core.memory(Space.UB).data.view(np.int32)[-20:].tolist() == [*range(17), 0, 0, 0]
