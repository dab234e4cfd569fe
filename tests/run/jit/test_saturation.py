"""Products that stop at the largest number, on the fast engine: Python has no say in them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.run.launch.host import launch
from tests.run.jit.both import same
from tests.run.jit.tiles import Tile, program

_NUMPY: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
_M, _N, _K = 18, 20, 9


def _factor(kind: str, seed: int) -> Any:
    """Numbers of all sizes, and among them infinite ones and NaN."""
    random, dtype = np.random.default_rng(seed), _NUMPY[kind]
    most = float(ml_dtypes.finfo(dtype).max)
    values = random.choice(
        [1.0, -1.0, 0.5, most, -most, most / 3], 8192 // np.dtype(dtype).itemsize
    )
    values[:: 97 + seed] = np.inf
    values[5 :: 101 + seed] = -np.inf
    values[7 :: 131 + seed] = np.nan
    return values.astype(dtype).view(np.uint8)


def _agree(kind: str, op: str, clauses: str, head: str = "") -> Any:
    tiles = [
        Tile("left", 1, 8192, "ui8", role="left"),
        Tile("right", 1, 8192, "ui8", role="right"),
        Tile("acc", 1, 8192, "ui8", role="acc"),
    ]
    spaces = {"a": (kind, "l0a"), "b": (kind, "l0b"), "c": ("f32", "l0c")}
    types = {name: f"!pto.ptr<{elem}, {space}>" for name, (elem, space) in spaces.items()}
    body = "".join(f"%{name} = pto.castptr %at0 : i64 -> {type}\n" for name, type in types.items())
    body += "".join(f"%i{n} = arith.constant {n} : i64\n" for n in (0, _M, _N, _K))
    body += f"{head}\npto.{op} %a, %b, %c, %i{_M}, %i{_N}, %i{_K} {clauses}"
    body += f" : {', '.join(types.values())}, i64, i64, i64"
    given = [_factor(kind, 1), _factor(kind, 2), _factor("f32", 3)]
    args: list[Any] = [np.zeros(16, np.float32)]
    for data in given:
        args += [data, np.zeros_like(data)]
    module, found = parse(program([("g", "f32")], tiles, body)), list[Any]()
    for engine in ("reference", "jit"):
        own = [each.copy() for each in args]
        launch(module, args=own, engine=engine, check=False)
        found.append(own[-1].view(np.float32))  # any NaN is as good as another
    same(*found)
    return found[0]


@pytest.mark.parametrize("op", ["mad", "mad_acc"])
@pytest.mark.parametrize("kind", list(_NUMPY))
def test_sums_end_at_the_largest_number(kind: str, op: str, python_is_silent: None) -> None:
    out = _agree(kind, op, "sat")[: _M * 16]
    most = np.finfo(np.float32).max
    if op == "mad":
        assert np.isfinite(out).all()
    if kind in ("f32", "bf16"):
        assert (np.abs(out) == most).any(), "something has to be stopped"


@pytest.mark.parametrize("away", ["even", "away"])
def test_what_tf32_rounds_to_infinity_stays(away: str, python_is_silent: None) -> None:
    out = _agree("f32", "mad_acc", f"tf32_mode(round_{away}) sat")
    assert np.isinf(out).any()


@pytest.mark.parametrize("bit", [0, 1])
def test_control_bit_48_decides(bit: int, python_is_silent: None) -> None:
    head = f"%w = arith.constant {bit << 48} : i64\npto.set_ctrl %w : i64"
    out = _agree("f16", "mad", "", head)[: _M * 16]
    assert np.isfinite(out).all() == (bit == 0)
