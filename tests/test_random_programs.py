"""A sample of random programs from the rows; `tests/random_programs.py` runs as many as wanted."""

from __future__ import annotations

import pytest

from tests.random_programs import ROWS, attempt


def test_there_are_rows_to_try():
    assert len(ROWS) > 80


@pytest.mark.parametrize("part", range(2))
@pytest.mark.filterwarnings("ignore")
def test_an_accepted_program_is_the_same_on_both_engines(part: int):
    found = [attempt(seed) for seed in range(40 * part, 40 * (part + 1))]
    assert [why for _, why in found if why] == []
    assert sum(what != "refused" for what, _ in found) >= 5


@pytest.mark.parametrize("types", [("i64", "ui64", "i64"), ("ui64", "i64", "ui64")])
@pytest.mark.parametrize("name", ["tshl", "tshr"])
def test_integers_of_one_width_count_as_the_destination_does(name: str, types: tuple[str, ...]):
    import numpy as np

    from pto.core.dtypes import dtype
    from pto.ir.text.parser import parse
    from tests.random_programs import outcome

    tile, view = "!pto.tile_buf<vec, 1x64x{}>", "!pto.tensor_view<1x64x{}>"
    lines = ["%c1 = arith.constant 1 : index", "%c64 = arith.constant 64 : index"]
    for n, t in enumerate(types):
        lines += [
            f"%v{n} = pto.make_tensor_view %p{n}, shape = [%c1, %c64], strides = [%c64, %c1] :"
            f" {view.format(t)}",
            f"%t{n} = pto.alloc_tile : {tile.format(t)}",
            f"pto.tload ins(%v{n} : {view.format(t)}) outs(%t{n} : {tile.format(t)})",
        ]
    kinds = [tile.format(t) for t in types]
    lines += [
        f'"pto.{name}"(%t0, %t1, %t2) : ({", ".join(kinds)}) -> ()',
        f"pto.tstore ins(%t2 : {kinds[2]}) outs(%v2 : {view.format(types[2])})",
    ]
    params = ", ".join(f"%p{n}: !pto.ptr<{t}, gm>" for n, t in enumerate(types))
    body = "\n".join(lines)
    text = f"func.func @f({params}) {{\n{body}\nreturn\n}}"
    arrays = [np.arange(64, dtype=dtype(t).numpy) for t in types]
    arrays[1] %= 64
    first, second = (outcome(parse(text), arrays, e) for e in ("reference", "jit"))
    assert first[0] == "bytes"
    assert first == second
    kind = dtype(types[2]).numpy
    values, counts = arrays[0].astype(kind), arrays[1].astype(kind)
    wanted = values << counts if name == "tshl" else values >> counts
    assert first[1][2] == wanted.tobytes()
