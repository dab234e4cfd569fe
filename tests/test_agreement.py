"""Every lane and fold of tiles in the table, on every type and profile, on both engines.

Random bits, NaN, infinities, denormals and extremes; whole tiles, odd valid regions and tails.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.isa.meaning.kinds import Fold, Lane
from pto.isa.row.instr import Instr
from pto.isa.table import rows
from tests import agreement
from tests.machine import Bench
from tests.run.jit.bench import edge_values, spelled

ROWS, COLS = 32, 64
REGIONS = [(31, 63), (7, 33), (32, 64), (1, 1)]  # `pytest --agree` takes all of them
_SOURCES = {"pto.tadddeqrelu": "i32"}  # where they have another type than the destination
_SCALARS = ("scalar", "number", "element", "float", "int")


def _is_plain(row: Instr) -> bool:
    kinds = {o.kind for o in row.operands if not o.optional}
    return (
        row.family.section == "tile"
        and isinstance(row.body, Lane | Fold)
        and kinds <= {"tile", *_SCALARS}
        and not row.text.startswith("=")
    )


TABLE = [r for r in rows() if _is_plain(r)]
CASES = [
    (row, profile, spelled(elem))
    for row in TABLE
    for profile in ("a5", "a2a3", "cpu")
    for elem in sorted(row.types.get(profile, ()))
]


def test_there_are_rows_to_compare() -> None:
    assert len(TABLE) > 60
    assert len(CASES) > 500


@pytest.fixture(autouse=True)
def mode(monkeypatch: pytest.MonkeyPatch) -> str:
    before = agreement.STATE.mode
    monkeypatch.setattr(agreement.STATE, "mode", "all")
    return before


def _shape(row: Instr, role: str, n: int, last: int, region: tuple[int, int]) -> Any:
    """Layout, shape and valid region of an operand: vectors of one value for a row or column."""
    body, (high, wide) = row.body, region
    axis = body.spread if isinstance(body, Lane) and role == "in" and n == last else None
    if isinstance(body, Fold) and role == "out":
        axis = "row" if _folds_rows(row) else "column"
    if axis == "row":
        return ", blayout=col_major", (ROWS, 1), (high, 1)
    if axis == "column":
        return "", (1, COLS), (1, wide)
    return "", (ROWS, COLS), region


def _folds_rows(row: Instr) -> bool:
    return row.name.startswith("pto.trow")


def _run(row: Instr, profile: str, elem: str, region: tuple[int, int], seed: int) -> bool:
    """Whether the reference accepts it; both engines agree either way."""
    bench, kind = Bench(profile), dtype(elem)
    ins: list[str] = []
    outs: list[str] = []
    tiles = [n for n, o in enumerate(row.operands) if o.kind == "tile" and o.role == "in"]
    for n, operand in enumerate(row.operands):
        if operand.optional:
            continue
        name = f"x{n}"
        (ins if operand.role in ("in", "tmp") else outs).append(name)
        if operand.kind != "tile":
            bench.scalar(name, elem, 3 if not kind.is_float else 1.5)
            continue
        last = tiles[-1] if tiles else -1
        layout, shape, valid = _shape(row, operand.role, n, last, region)
        own = _SOURCES.get(row.name, elem) if operand.role != "out" else elem
        values = edge_values(dtype(own), shape[0] * shape[1], seed + n).reshape(shape)
        bench.tile(name, f"vec, {shape[0]}x{shape[1]}x{own}{layout}", values, valid=valid)
    parts = [
        f"{word}({', '.join('%' + n for n in names)} : {', '.join('{' + n + '}' for n in names)})"
        for word, names in (("ins", ins), ("outs", outs))
        if names
    ]
    try:
        bench.run(f"{row.name} {' '.join(parts)}")
    except PtoError:
        return False
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every row, profile and type with --agree; else a type that a5 has too stands for both."""
    if "elem" not in metafunc.fixturenames:
        return
    whole = metafunc.config.getoption("agree") == "all"
    cases = [case for case in CASES if whole or _is_own(*case)]
    names = [f"{row.name}-{profile}-{elem}" for row, profile, elem in cases]
    metafunc.parametrize("row, profile, elem", cases, ids=names)


def _is_own(row: Instr, profile: str, elem: str) -> bool:
    return profile == "a5" or elem not in map(spelled, row.types.get("a5", ()))


def test_rows_of_tiles(row: Instr, profile: str, elem: str, mode: str) -> None:
    chosen = REGIONS if mode == "all" else REGIONS[1:2]
    seed = zlib.crc32(f"{row.name}{elem}".encode()) % 1000
    with np.errstate(all="ignore"):
        done = [_run(row, profile, elem, region, seed) for region in chosen]
    assert any(done), "the reference accepts none of these"
