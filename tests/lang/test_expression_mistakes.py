"""What people get wrong with expressions first: a finding at their line that says what to write."""

# ruff: noqa: F821, UP037 (names of sizes stand in annotations)
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import pto
from pto import isa

F32 = pto.Global[pto.f32]


def _two_types(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    pto.store(y[0:16, :], t.to(pto.f16) * t)


def _float_into_integers(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :]).to(pto.i32)
    pto.store(y[0:16, :], (t * 0.5).to(pto.f32))


def _two_shapes(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], pto.load(x[0:16, :]) + pto.load(x[0:16, 0:64]))


def _turned(x: F32, y: F32) -> None:
    pto.store(y[0:16, 0:64], pto.load(x[0:16, 0:64]) + pto.load(x[0:64, 0:32])[0:64, 0:16])


def _two_types_compared(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    pto.store(y[0:16, :], pto.where(t < t.to(pto.f16), t, 0.0))


def _two_types_chosen(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    pto.store(y[0:16, :], pto.where(t > 0.0, t, t.to(pto.i32)))


def _factors(x: F32, y: F32) -> None:
    pto.store(y[0:16, 0:16], pto.dot(pto.load(x[0:16, :]), pto.load(x[0:16, :])))


def _sum_of_products(x: F32, y: F32) -> None:
    acc = pto.zeros(16, 16, pto.f32, role="acc")
    acc += pto.load(x[0:16, 0:16])
    pto.store(y[0:16, 0:16], acc)


def _vector_accumulator(x: F32, y: F32) -> None:
    total = pto.zeros(16, 16, pto.f32)
    pto.dot(pto.load(x[0:16, 0:16]), pto.load(x[0:16, 0:16]), acc=total)


def _no_such_type(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], pto.exp(pto.load(x[0:16, :]).to(pto.bf16)).to(pto.f32))


def _no_such_conversion(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], pto.load(x[0:16, :]).to(pto.i8))


def _empty(x: F32, y: F32) -> None:
    pto.store(y[0:16, 0:16], pto.zeros(16, 16, pto.f32, role="acc"))


def _first_in_branch(x: F32, y: F32) -> None:
    acc = pto.zeros(16, 16, pto.f32, role="acc")
    if pto.block_idx() > 0:
        pto.dot(pto.load(x[0:16, 0:16]), pto.load(x[0:16, 0:16]), acc=acc)


def _python_if(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    if t > 0.0:
        pto.store(y[0:16, :], t)


def _mask_as_number(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    pto.store(y[0:16, :], t * (t > 0.0))


def _chained(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    pto.store(y[0:16, :], pto.where(0.0 < t & t < 1.0, t, 0.0))


def _array(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], x[0:16, :] * 2.0)


def _array_beside_tile(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], pto.load(x[0:16, :]) + x[0:16, :])


def _numpy(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], np.exp(pto.load(x[0:16, :])))


def _math(x: F32, y: F32) -> None:
    math.exp(pto.load(x[0:16, :]))


def _element(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    t[0, 0, 0] = 1.0


def _masked(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    t[t < 0.0] = 0.0


def _without_element_type(x: F32, y: F32) -> None:
    pto.zeros((16, 128))  # pyright: ignore


def _third_axis(x: F32, y: F32) -> None:
    pto.load(x[0:16, :]).sum(axis=2)


def _dropped_axis(x: F32, y: F32) -> None:
    pto.load(x[0:16, :]).sum(axis=1, keepdims=False)


def _swapped(x: F32, y: F32) -> None:
    pto.store(pto.load(x[0:16, :]), y[0:16, :])


def _number_stored(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], 1.0)


def _python_range(x: pto.Global[pto.f32, "m", "n"], y: F32) -> None:
    for i in range(x.shape[0]):
        pto.load(x[i, :], 1, 128)


def _unknown_size(x: pto.Global[pto.f32, "m", "n"], y: F32) -> None:
    pto.load(x)


def _half_stored(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], pto.load(x[0:16, :]).to(pto.f16))


def _rest_left_out(x: F32, y: F32) -> None:
    pto.load(x[0:16, :], 16, 64)


def _rest_of_a_block_left_out(x: F32, y: F32) -> None:
    pto.load(x[pto.block_idx() * 16 :, :], 16, 64)


def _flattened(x: F32, y: F32) -> None:
    pto.store(y[0:1, :], pto.load(x[0:16, :]).flatten())  # pyright: ignore


def _running_sum(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], pto.load(x[0:16, :]).cumsum(axis=1))  # pyright: ignore


def _function_as_method(x: F32, y: F32) -> None:
    pto.store(y[0:16, :], pto.load(x[0:16, :]).exp())  # pyright: ignore


def _instruction_as_method(x: F32, y: F32) -> None:
    pto.load(x[0:16, :]).concat(pto.load(x[0:16, :]))  # pyright: ignore


def _misspelt_method(x: F32, y: F32) -> None:
    pto.load(x[0:16, :]).maxx(axis=1)  # pyright: ignore


def _where_of_two(x: F32, y: F32) -> None:
    t = pto.load(x[0:16, :])
    pto.store(y[0:16, :], pto.where(t > 0.0, t))  # pyright: ignore


def _three_logarithms(x: F32, y: F32) -> None:
    pto.log(pto.load(x[0:16, :]), 2, 3)  # pyright: ignore


def _renamed_function(x: F32, y: F32) -> None:
    pto.sum(pto.load(x[0:16, :]), 1, True)  # pyright: ignore


def _unknown_keyword(x: F32, y: F32) -> None:
    pto.load(x[0:16, :]).sum(dim=1)  # pyright: ignore


def _misspelt_address(x: F32, y: F32) -> None:
    pto.tile(16, 128, pto.f32, addr=0)  # pyright: ignore


MISTAKES: list[tuple[Callable[..., None], str, str]] = [
    (_two_types, "PTO-U082", ".to(pto.f32)"),
    (_two_types_compared, "PTO-U082", ".to(pto.f32)"),
    (_two_types_chosen, "PTO-U082", ".to(pto.f32)"),
    (_float_into_integers, "PTO-U082", "t.to(pto.f32)"),
    (_two_shapes, "PTO-U083", "load both with the same sizes"),
    (_turned, "PTO-U083", ".T"),
    (_factors, "PTO-U083", "the columns of the left tile are the rows of the right one"),
    (_sum_of_products, "PTO-U084", "pto.dot(a, b, acc=acc)"),
    (_vector_accumulator, "PTO-U084", 'role="acc"'),
    (_no_such_type, "PTO-U085", ".to(pto.f32)"),
    (_no_such_conversion, "PTO-U085", ".to(pto.f16).to(pto.i8)"),
    (_empty, "PTO-U086", "pto.dot(a, b, acc="),
    (_first_in_branch, "PTO-U086", "multiply once before it"),
    (_python_if, "PTO-U202", "pto.where(t < 0.0, a, b)"),
    (_mask_as_number, "PTO-U089", "pto.where(t > 0.0, a, 0.0)"),
    (_chained, "PTO-U085", "&"),
    (_array, "PTO-U081", "pto.load(x[i:, :], 16, 128)"),
    (_array_beside_tile, "PTO-T209", "load it first"),
    (_numpy, "PTO-U081", "pto.exp(t)"),
    (_math, "PTO-U081", "pto.exp(t)"),
    (_element, "PTO-S200", "t[3, 5] one element"),
    (_masked, "PTO-U081", "pto.where(t > 0.0, t, 0.0)"),
    (_without_element_type, "PTO-U203", "pto.zeros(16, 128, pto.f32)"),
    (_third_axis, "PTO-U088", "t.sum(axis=1)"),
    (_dropped_axis, "PTO-U088", "leave it out"),
    (_swapped, "PTO-T209", "pto.store(y[i:, :], t)"),
    (_number_stored, "PTO-T209", "pto.full(16, 128, 1.0, pto.f32)"),
    (_python_range, "PTO-U203", "pto.range(n)"),
    (_unknown_size, "PTO-U203", "pto.load(x[i:, :], 16, 128)"),
    (_half_stored, "PTO-U082", "t.to(pto.f32)"),
    (_flattened, "PTO-U081", "t.reshape(1, -1)"),
    (_running_sum, "PTO-U081", "pto.cumsum(t"),
    (_function_as_method, "PTO-U081", "it is a function: pto.exp(t)"),
    (_instruction_as_method, "PTO-U081", "isa.tconcat"),
    (_misspelt_method, "PTO-U081", "`max`"),
    (_where_of_two, "PTO-U205", "pto.where(cond, a, b, dst=None): `a` where the comparison holds"),
    (_three_logarithms, "PTO-U205", "the call is pto.log(t)"),
    (_renamed_function, "PTO-U205", "pto.sum(t, axis=None)"),
    (_unknown_keyword, "PTO-U205", "t.sum(axis=None, keepdims=True)"),
    (_misspelt_address, "PTO-U205", "address=None"),
    (_rest_left_out, "PTO-U080", "a larger tile"),
    (_rest_of_a_block_left_out, "PTO-U080", "a larger tile"),
]


@pytest.mark.parametrize(("function", "code", "advice"), MISTAKES)
def test_a_typical_mistake_is_answered_with_what_to_write(
    function: Callable[..., None], code: str, advice: str
):
    x = np.ones((64, 128), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(profile="a2a3")(function)(x, x.copy())
    told = str(caught.value)
    assert caught.value.code == code, told
    assert advice in told
    (found,) = caught.value.diagnostics
    first = function.__code__.co_firstlineno
    assert found.loc is not None and first < found.loc.line < first + 6, "it points at their line"


@pytest.mark.parametrize("engine", ["jit", "reference"])
def test_factors_that_differ_when_the_kernel_runs(engine: str):
    """Python cannot know that `k` and `l` are one size: the run does."""

    @pto.kernel
    def product(
        x: pto.Global[pto.f16, "m", "k"],
        y: pto.Global[pto.f16, "l", "n"],
        z: pto.Global[pto.f32, "m", "n"],
    ) -> None:
        pto.store(z, pto.dot(pto.load(x, 16, 32), pto.load(y, 32, 16)))

    x, z = np.ones((16, 13), np.float16), np.zeros((16, 16), np.float32)
    product(x, np.ones((13, 16), np.float16), z, engine=engine)
    assert (z == 13).all()
    for inner in (12, 20):
        with pytest.raises(pto.PtoError, match="PTO-S135") as caught:
            product(x, np.ones((inner, 16), np.float16), z, engine=engine)
        (found,) = caught.value.diagnostics
        assert "the columns of the left tile are not the rows of the right one" in found.message
        assert [note.message for note in found.notes] == ["columns = 13", f"rows = {inner}"]


def test_a_size_with_the_name_of_a_parameter():
    @pto.kernel
    def copied(x: pto.Global[pto.f32, "n"], n: pto.Scalar[pto.i32]) -> None:
        pto.store(x, pto.load(x, 64))

    with pytest.raises(pto.PtoError, match="PTO-U210") as caught:
        copied(np.ones(64, np.float32), 3)
    assert 'the size "n" has the name of a parameter' in str(caught.value)
    assert "x.shape[0] is the size" in str(caught.value)


def test_a_profile_is_not_an_argument():
    x = np.ones((16, 128), np.float32)
    with pytest.raises(pto.PtoError, match="PTO-U210") as caught:
        pto.kernel(_two_shapes)[1](x, x, profile="a2a3")
    assert '_two_shapes.on("a2a3")' in str(caught.value)


def test_the_same_answers_at_once():
    t = np.ones((16, 128), np.float32)
    with pytest.raises(pto.PtoError, match="PTO-U081"), pto.eager("a5"):
        pto.load(t).ravel()  # pyright: ignore
    with pytest.raises(pto.PtoError, match="PTO-U205"), pto.eager("a5"):
        pto.where(pto.load(t) > 0.0, 1.0)  # pyright: ignore


def test_what_is_not_ours_stays_python_s():
    """A function of theirs, an object of theirs: the error is as Python wrote it."""

    def where(cond: object, a: object, b: object) -> None: ...

    def called(x: F32) -> None:
        where(1, 2)  # pyright: ignore

    def asked(x: F32) -> None:
        "text".reshape()  # pyright: ignore

    for function, kind in ((called, TypeError), (asked, AttributeError)):
        with pytest.raises(kind):
            pto.kernel(function)(np.ones(64, np.float32))


def test_the_advice_about_methods_is_right():
    """What the help of `reshape` and `copy` says, in a kernel."""

    @pto.kernel(profile="a5")
    def k(x: F32, y: F32, z: F32) -> None:
        t = pto.load(x)
        pto.store(y, isa.treshape(t, to=pto.tile_type(32, 64, pto.f32)))
        u = pto.zeros_like(t)
        u[:] = t
        pto.store(z, u)

    x = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
    y, z = np.zeros((32, 64), np.float32), np.zeros_like(x)
    k(x, y, z)
    assert (y == x.reshape(32, 64)).all() and (z == x).all()
