"""Operators, methods and functions that the values of a kernel do not have: always a finding, at
the user's line, that says what to write."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import Diagnostic
from pto.lang.call.misused import instead
from pto.lang.call.place import is_own
from pto.lang.names import HOMES

F32 = pto.Global[pto.f32]
X = np.zeros((16, 64), np.float32)
Body = Callable[[Any, Any, Any], object]


def told(body: Body, profile: str = "a5") -> Diagnostic:
    """The finding about an expression of a tile, its array and a number of the program."""

    def k(x: F32, y: F32) -> None:
        pto.store(y, pto.load(x, 16, 64))
        body(pto.load(x, 16, 64), x, pto.block_idx())

    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(profile=profile)(k).module(X, X.copy())
    return caught.value.diagnostics[0]


MISUSES: dict[str, tuple[Body, str, str]] = {
    "minus a mask": (lambda t, x, n: -(t > 0.0), "a comparison of tiles", "pto.where"),
    "mask plus one": (lambda t, x, n: (t > 0.0) + 1, "a comparison of tiles and 'int'", "where"),
    "fold of a mask": (lambda t, x, n: (t > 0.0).sum(), "has no `sum`", "pto.where"),
    "turned window": (lambda t, x, n: x[0:4].transpose(), "a window on global memory", "].T"),
    "reshaped window": (
        lambda t, x, n: x[0:4].reshape(2, 2),
        "has no `reshape`",
        "[i : i + 16, None]",
    ),
    "too many indices": (lambda t, x, n: x[0, 0, 0], "3 indices for x", "at most one for each"),
    "floats to bytes": (
        lambda t, x, n: t.to(pto.u8),
        "converts f32 to f16",
        ".to(pto.f16).to(pto.u8) (rounds more than once)",
    ),
    "words to bytes": (  # by way of u8 the sign would be lost
        lambda t, x, n: pto.zeros(16, 64, pto.i32).to(pto.i8),
        "converts i32 to",
        ".to(pto.f32).to(pto.f16).to(pto.i8) (rounds more than once)",
    ),
    "window's shape": (lambda t, x, n: x[0:4].shape, "has no `shape`", "t.valid"),
    "array's maximum": (lambda t, x, n: x.max(), "an array in global memory", "pto.load"),
    "minus an array": (lambda t, x, n: -x, "an array in global memory", "pto.load"),
    "array compared": (lambda t, x, n: x < 1.0, "an array in global memory", "pto.load"),
    "number's method": (lambda t, x, n: n.sqrt(), "a number of the program", ".to()"),
    "power of a number": (
        lambda t, x, n: n**0.5,
        "exponent of a number of the program",
        "pto.tpows",
    ),
    "tile called": (lambda t, x, n: t(), "a tile is not callable", "pto isa"),
    "length of a tile": (lambda t, x, n: len(t), "a tile has no len()", "pto isa"),
    "rounded tile": (lambda t, x, n: round(t), "a tile", "pto isa"),
    "no such function": (lambda t, x, n: pto.maxx(t, t), "pto has no `maxx`", "`max`"),
    "Triton's block number": (lambda t, x, n: pto.program_id(0), "no `program_id`", "block_idx(0)"),
    "NumPy's type": (lambda t, x, n: t.to(pto.float32), "no `float32`", "write pto.f32"),
    "a square": (lambda t, x, n: pto.square(t), "no `square`", "write t * t"),
    "running sums as a method": (lambda t, x, n: t.cumsum(1), "no `cumsum`", "pto.cumsum(t"),
    "misspelt": (lambda t, x, n: pto.zerosl(t), "pto has no `zerosl`", "`zeros`"),
    "NumPy's maximum": (lambda t, x, n: np.maximum(t, t), "NumPy's maximum", "pto.maximum(a, b"),
    "NumPy's exp": (lambda t, x, n: np.exp(t), "NumPy's exp", "pto.exp(t)"),
    "NumPy's sum": (lambda t, x, n: np.sum(t), "NumPy's sum", "pto.sum(t"),
    "NumPy's tanh": (lambda t, x, n: np.tanh(t), "NumPy's tanh", "pto.tanh(t)"),
    "NumPy's transpose": (lambda t, x, n: np.transpose(t), "NumPy's transpose", "t.T"),
    "NumPy's where": (lambda t, x, n: np.where(t > 0.0, t, t), "NumPy's where", "pto.where(cond"),
    "NumPy's add": (lambda t, x, n: np.add(t, t), "NumPy's add", "write a + b"),
    "NumPy of an array": (lambda t, x, n: np.sum(x[0:4]), "a window on global", "pto.sum(t"),
    "NumPy of a number": (lambda t, x, n: np.maximum(n, 3), "a number of the", "pto.maximum(a, b"),
    "NumPy's array of numbers": (lambda t, x, n: np.ones(4) * t, "NumPy's multiply", "a * b"),
    "NumPy's array": (lambda t, x, n: np.asarray(t), "NumPy's array", "pto.store"),
    "math": (lambda t, x, n: math.exp(t), "Python needs one number", "pto.exp(t) for math.exp"),
    "our TypeError": (lambda t, x, n: pto.tri(8, "a"), "does not take these arguments", ""),
    "three indices": (lambda t, x, n: t[0, 0, 0], "two slices or numbers", "t[3, 5] one element"),
    "iteration": (lambda t, x, n: [*t], "cannot iterate over a tile", "fold"),
    "greater of tiles": (lambda t, x, n: max(t, t), "a truth for each element", "pto.max"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_is_explained_at_the_line(name: str):
    body, message, help = MISUSES[name]
    found = told(body)
    assert message in found.message
    assert help in (found.help or "")
    assert found.loc is not None and found.loc.file == __file__
    assert found.loc.line == body.__code__.co_firstlineno


@pytest.mark.parametrize("function", [np.maximum, np.add])
def test_numpy_cannot_compute_with_a_register(function: Callable[[Any, Any], object]):
    def body(t: Any, x: Any, n: Any) -> None:
        with pto.vecscope():
            v = isa.vlds(t, 0)
            function(v, v)

    assert f"NumPy's {function.__name__} cannot compute" in told(body).message


def test_eager_mode_explains_it_too():
    with pytest.raises(pto.PtoError, match="PTO-U081"), pto.eager("a5"):
        _ = -(pto.load(X, 16, 64) > 0.0)
    with pytest.raises(pto.PtoError, match="PTO-U205"), pto.eager("a5"):
        pto.tri(8, "a")  # pyright: ignore
    with pytest.raises(KeyError), pto.eager("a5"):
        {}["of the user"]


@pytest.mark.parametrize("step", [0, -1, -8])
def test_a_loop_that_does_not_count_up(step: int):
    found = told(lambda t, x, n: list(pto.range(10, 0, step)))
    assert found.code == "PTO-U220" and str(step) in found.message
    assert "i = n - 1 - j" in (found.help or "") and "scf" not in found.message


@pytest.mark.parametrize(
    ("profile", "body", "help"),
    [
        ("a2a3", lambda t, x, n: t.to(pto.i32) / t.to(pto.i32), "t.to(pto.f32), and .to(pto.i32)"),
        ("a5", lambda t, x, n: pto.exp(t.to(pto.i32)), "t.to(pto.f32), and .to(pto.i32)"),
        ("a2a3", lambda t, x, n: t & t, "t.to(pto.i32), and .to(pto.f32)"),
        ("a2a3", lambda t, x, n: t.to(pto.f16).to(pto.i8).sum(axis=1), "t.to(pto.f16)"),
    ],
)
def test_the_help_names_a_type_that_the_instruction_takes(profile: str, body: Body, help: str):
    found = told(body, profile)
    assert found.code == "PTO-U085"
    assert help in (found.help or "")


def test_a_user_s_own_exception_stays_what_it_is():
    def raises(x: F32, y: F32) -> None:
        {}["not there"]

    def wrong(x: F32, y: F32) -> None:
        len(3)  # pyright: ignore[reportArgumentType]

    for function, kind in ((raises, KeyError), (wrong, TypeError)):
        with pytest.raises(kind):
            pto.kernel(function).module(X, X.copy())


def test_the_traceback_of_a_user_s_exception_has_few_frames_of_ours():
    def inner() -> int:
        try:
            return {}["not there"]
        except KeyError:
            raise ValueError("told by the user")  # noqa: B904

    def k(x: F32, y: F32) -> None:
        inner()

    with pytest.raises(ValueError, match="told by the user") as caught:
        pto.kernel(k)(X, X.copy())
    own = [entry for entry in caught.traceback if is_own(str(entry.path))]
    assert len(own) <= 2
    assert [entry.name for entry in caught.traceback][-2:] == ["k", "inner"]
    assert isinstance(caught.value.__context__, KeyError)
    assert not caught.value.__suppress_context__


def names_of_others() -> list[tuple[str, str]]:
    """Names of Triton, NumPy and torch, with what a program here has in their place."""
    types = [(f"float{n}", f"pto.f{n}") for n in (16, 32, 64)]
    types += [(f"{u}int{n}", f"pto.{u or 'i'}{n}") for u in ("", "u") for n in (8, 16, 32, 64)]
    types += [("fp16", "pto.f16"), ("bfloat16", "pto.bf16"), ("bool", "pto.u8")]
    return [
        *types,
        ("constexpr", "rows: int = 16"),
        ("jit", "@pto.kernel"),
        ("Tensor", "pto.Global[pto.f32]"),
        ("ndarray", "pto.Global[pto.f32]"),
        ("num_programs", "pto.block_num(0)"),
        ("mul", "a * b"),
        ("inf", 'float("inf")'),
        ("syncthreads", "leave it out"),
        ("tadd", "isa.tadd"),
        ("zerosl", "`zeros`"),
    ]


@pytest.mark.parametrize(("name", "help"), names_of_others())
def test_a_name_of_another_package_says_what_to_write_in_annotations_too(name: str, help: str):
    with pytest.raises(
        AttributeError, match=f"'pto' has no attribute '{name}'; .*{re.escape(help)}"
    ):
        getattr(pto, name)
    found = told(lambda t, x, n: getattr(pto, name))
    assert found.code == "PTO-U081" and help in (found.help or "")


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("float", "t.to(pto.f32)"),
        ("half", "t.to(pto.f16)"),
        ("int", "t.to(pto.i32)"),
        ("double", "t.to(pto.f64)"),
        ("std", "pto.sqrt((d * d).mean(axis=1))"),
        ("var", "(d * d).mean(axis=1)"),
        ("unsqueeze", "two dimensions"),
    ],
)
def test_a_method_of_a_torch_array_says_what_to_write(name: str, help: str):
    assert help in (told(lambda t, x, n: getattr(t, name)()).help or "")


def test_what_is_offered_exists():
    for name in ("maximum", "exp", "sum", "absolute", "amax", "matmul", "where", "mean"):
        assert "pto." in (instead(name) or "") or "t." in (instead(name) or ""), name
    assert Path("examples/gallery/gelu.py").exists()
    assert instead("nothing_like_it") is None


ODD: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda t, x, n: t,
    lambda t, x, n: x,
    lambda t, x, n: x[0:4, :],
    lambda t, x, n: t > 0.0,
    lambda t, x, n: n,
    lambda t, x, n: "word",
    lambda t, x, n: None,
    lambda t, x, n: [1],
    lambda t, x, n: -1,
    lambda t, x, n: 1.5,
    lambda t, x, n: np.float32(2.0),
    lambda t, x, n: object(),
)
EXPRESSED = [n for home, names in HOMES.items() if ".express." in home for n in names.split()]


@pytest.mark.parametrize("name", [*EXPRESSED, "range", "cdiv", "select", "tile"])
def test_no_argument_of_a_function_makes_an_error_that_is_no_finding(name: str):
    function = getattr(pto, name)
    for count, every in ((1, 1), (2, 11), (3, 131)):
        for made in [*itertools.product(ODD, repeat=count)][::every]:

            def k(x: F32, y: F32, made: Any = made) -> None:
                t, n = pto.load(x, 16, 64), pto.block_idx()
                function(*(each(t, x, n) for each in made))

            try:
                pto.kernel(k).module(X, X.copy())
            except pto.PtoError as error:
                assert error.diagnostics[0].loc is not None


def test_an_option_that_is_a_method_is_named():
    @pto.kernel(profile="a5")
    def k(x: F32) -> None:
        pto.store(x, pto.load(x, 16, 64))

    with pytest.raises(pto.PtoError, match=r"k\.sanitize\(\.\.\.\) runs it under the sanitizer"):
        k(np.zeros((16, 64), np.float32), sanitize=True)  # pyright: ignore[reportCallIssue]
