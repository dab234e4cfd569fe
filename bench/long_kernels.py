"""Kernels of thousands of lines: a Fourier transform, butterfly by butterfly."""

from __future__ import annotations

import cmath
import math
from typing import Any

import pto


def fourier(points: int) -> Any:
    """The transform of the rows of a matrix: 2,949 lines of text for 64 points, 1,259 for 32."""
    bits = points.bit_length() - 1
    order = [int(f"{n:0{bits}b}"[::-1], 2) for n in range(points)]

    @pto.kernel(profile="a5")
    def transform(
        re: pto.Global[pto.f32],
        im: pto.Global[pto.f32],
        out_re: pto.Global[pto.f32],
        out_im: pto.Global[pto.f32],
    ) -> None:
        a = [(pto.load(re[k, :]), pto.load(im[k, :])) for k in order]
        half = 1
        while half < points:
            for start in range(0, points, 2 * half):
                for k in range(start, start + half):
                    (ur, ui), (vr, vi) = a[k], _turned(a[k + half], (k - start) / half)
                    a[k], a[k + half] = (ur + vr, ui + vi), (ur - vr, ui - vi)
            half *= 2
        for k, (r, i) in enumerate(a):
            pto.store(out_re[k, :], r)
            pto.store(out_im[k, :], i)

    return transform


def _turned(value: tuple[Any, Any], part: float) -> tuple[Any, Any]:
    """Times exp(-i pi part)."""
    if not part:
        return value
    (r, i), w = value, cmath.exp(-1j * math.pi * part)
    return r * w.real - i * w.imag, r * w.imag + i * w.real
