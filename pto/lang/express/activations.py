"""Functions of tiles that models are made of, each a short sequence of instructions.

They are as precise as their sequence: `tanh` and `sigmoid` within 2 units of the last place of 1,
in absolute terms; `gelu` within 4e-6 of its value.
"""

from __future__ import annotations

from typing import Any

from pto.lang.call.place import mistake
from pto.lang.express.algebra import as_tile
from pto.lang.express.functions import exp, maximum, minimum, relu
from pto.lang.values.tiles import Tile


def tanh(t: Tile) -> Tile:
    """1 - 2 / (e ** 2t + 1): `tmuls`, `texp`, `tadds`, `tdivs`, `tneg`, `tadds`."""
    t = as_tile("tanh", t)
    return 1.0 - 2.0 / (exp(t * 2.0) + 1.0)


def sigmoid(t: Tile) -> Tile:
    """1 / (1 + e ** -t): `tneg`, `texp`, `tadds`, `tdivs`."""
    t = as_tile("sigmoid", t)
    return 1.0 / (1.0 + exp(-t))


def silu(t: Tile) -> Tile:
    """t * sigmoid(t), as t / (1 + e ** -t): `tneg`, `texp`, `tadds`, `tdiv`."""
    t = as_tile("silu", t)
    return t / (1.0 + exp(-t))


def gelu(t: Tile, approximate: str = "none") -> Tile:
    """t * (1 + erf(t / sqrt 2)) / 2, or with `approximate="tanh"` the form by tanh.

    The first is relu(t) - |t| erfc(|t| / sqrt 2) / 2, 22 instructions; the second is
    t / (1 + e ** -2z), z = sqrt(2 / pi) (t + 0.044715 t ** 3): `tmuls`, `tmul`, `tmul`, `tadd`,
    `tmuls`, `texp`, `tadds`, `tdiv`.
    """
    t = as_tile("gelu", t)
    if approximate == "tanh":
        return t / (1.0 + exp(-1.5957691216057308 * (t + 0.044715 * t * t * t)))
    if approximate != "none":
        raise mistake(
            "PTO-U205",
            f"pto.gelu has no approximation {approximate!r}",
            help='it is "none", by erf, or "tanh"',
        )
    size = abs(t)
    z = size * 0.7071067811865476
    k = 1.0 / (1.0 + 0.43 * z)
    series = k * _ERFC[0]
    for each in _ERFC[1:]:
        series = k * (each + series)
    return relu(t) - 0.5 * size * (series * exp(-(z * z)))


# erfc(z) e ** (z * z) as a polynomial in k = 1 / (1 + 0.43 z) without a constant, fitted for z to
# 6.5: within 2.9e-6 of its value in f32, so that small values of gelu are as precise as others.
_ERFC = (-0.157782022, 0.42011952, -0.0256373853, 0.289375267, 0.230468526, 0.243453588)


# erf(x) / x as a quotient of polynomials in x * x, fitted for |x| <= 4: within 2.5e-8, relative.
_ERF = (
    (
        1.986931e-06,
        2.8454711752e-04,
        3.8824915674e-03,
        5.3099075343e-02,
        0.1935251063,
        1.1283791396,
    ),
    (3.7420757e-05, 1.18536618e-03, 1.52055286e-02, 0.115341725509, 0.504839719246, 1.0),
)


def erf(t: Tile) -> Tile:
    """The error function, within 5e-7 of its value: t P(t * t) / Q(t * t), 27 instructions: `tmul`,
    `tmuls`, `tadds`, `tdiv`, `tmaxs`, `tmins`."""
    x = clamp(as_tile("erf", t), -4.0, 4.0)
    square = x * x
    quotient: list[Tile] = []
    for first, second, *rest in _ERF:
        polynomial = square * first + second
        for coefficient in rest:
            polynomial = polynomial * square + coefficient
        quotient.append(polynomial)
    return clamp(x * quotient[0] / quotient[1], -1.0, 1.0)


def softmax(t: Tile, axis: int = 1) -> Tile:
    """e ** t divided by its sum along an axis, from the maximum down so that nothing overflows:
    `trowmax`, `trowexpandsub`, `texp`, `trowsum`, `trowexpanddiv`; axis 0 with `tcol`."""
    t = as_tile("softmax", t)
    e = exp(t - t.max(axis=axis))
    return e / e.sum(axis=axis)


def clamp(t: object, low: object = None, high: object = None) -> Any:
    """t, not below `low` and not above `high`, of which one may be left out: `tmaxs`, `tmins`, and
    with tiles, rows and columns as bounds `tmax` and the like. Numbers of a kernel too."""
    if low is None and high is None:
        raise mistake("PTO-U205", "pto.clamp has no bound", help="pto.clamp(t, -1.0, 1.0)")
    t = t if low is None else maximum(t, low)
    return t if high is None else minimum(t, high)
