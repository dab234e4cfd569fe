"""NaN in, NaN out: one sign and payload on both engines, whatever came in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa

PAYLOADS = {"f16": (np.float16, 0x7E56, 0xFE56), "f32": (np.float32, 0x7FC12345, 0xFFC12345)}


@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize("name", ["texp", "tlog", "tsqrt", "trecip", "trsqrt", "tneg", "trelu"])
def test_functions_of_nan(name: str, kind: str):
    element, (numpy, *bits) = getattr(pto, kind), PAYLOADS[kind]

    @pto.kernel(profile="a5")
    def apply(x: pto.Global[Any], y: pto.Global[Any]) -> None:
        a, b = pto.tile(8, 64, element), pto.tile(8, 64, element)
        isa.tload(a, x)
        getattr(isa, name)(b, a)
        isa.tstore(y, b)

    word = np.dtype(f"u{np.dtype(numpy).itemsize}")
    x = np.resize(np.array(bits, word), (8, 64)).view(numpy)
    found = []
    for engine in ("reference", "jit"):
        y = np.zeros_like(x)
        apply.run(x, y, engine=engine)
        assert np.isnan(y).all()
        found.append(y.tobytes())
    assert found[0] == found[1]
