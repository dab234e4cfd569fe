"""Every lane function of vector registers in compiled code, on every type its row takes."""

from __future__ import annotations

from typing import Any

import pytest

from pto.core.dtypes import dtype
from pto.isa.meaning.kinds import Lane
from pto.isa.row.instr import Instr
from pto.isa.table import rows
from pto.run.jit.emit.instructions import compiled_as
from tests.run.jit.bench import BothEngines, edge_values, spelled
from tests.vectors import reg

_KINDS = ("vreg", "element", "i16")  # of sources; other forms have programs of their own


def _is_plain(row: Instr) -> bool:
    """Registers and scalars to one register of the same lanes, under a mask."""
    if row.family.section != "vector" or not isinstance(row.body, Lane):
        return False
    *sources, last = row.operands
    if row.body.part is not None or last.name != "mask" or row.body.chooses:
        return False
    return [r.kind for r in row.results] == ["vreg"] and all(o.kind in _KINDS for o in sources)


_ROWS = [r for r in rows() if _is_plain(r)]
_CASES = [(r, spelled(e)) for r in _ROWS for e in sorted(r.types["a5"])]
_SOME = [0, 2, 3, 7, 20, 31]


@pytest.mark.parametrize("row, elem", _CASES, ids=[f"{r.name}-{e}" for r, e in _CASES])
def test_lanes(row: Instr, elem: str) -> None:
    kind, bench = dtype(elem), BothEngines()
    bench.mask("m", min(8 * kind.itemsize, 32), _SOME)
    bench.mask("all", min(8 * kind.itemsize, 32))
    names: list[str] = []
    for n, operand in enumerate(row.operands[:-1]):
        names.append(_operand(bench, operand.kind, elem, n))
    attr = ', "Z"' if row.attr("round_mode") else ""
    types = ", ".join(f"{{{n}}}" for n in names)
    given = ", ".join(f"%{n}" for n in names)
    body = "\n".join(
        f"%{r} = {row.name} {given}, %{mask}{attr} : {types}, {{{mask}}} -> {reg(elem)}"
        for r, mask in (("r", "m"), ("s", "all"))
    )
    bench.two(body, reg(elem))


def _operand(bench: BothEngines, kind: str, elem: str, n: int) -> str:
    name, known = f"x{n}", dtype(elem)
    if kind == "vreg":
        bench.vreg(name, elem, edge_values(known, known.lanes, n))
    else:
        value: Any = 3 if kind == "i16" or not known.is_float else 1.5
        bench.scalar(name, "i16" if kind == "i16" else elem, value)
    return name


def test_every_vector_row_but_these_has_compiled_code() -> None:
    vectors = [r for r in rows() if r.family.section == "vector"]
    left = {r.name for r in vectors if compiled_as(r) is None}
    repeats = {r.name for r in vectors if r.name.startswith("pto.ub.")}  # of buffers, by counts
    assert left - repeats == {"pto.vmi.pack", "pto.vmi.unpack"}  # steps inside the compiler
