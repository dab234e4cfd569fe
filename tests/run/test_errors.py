"""Bad input at run time: a coded finding at the line of the program, and GM as it was before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.parser import parse
from pto.run.launch.host import launch

SENTINEL = -77.0


def kernel(params: str, body: str) -> str:
    """A kernel of a5 whose body starts on line 3."""
    return (
        'module attributes {pto.target_arch = "a5"} {\n'
        f"func.func @k({params}) attributes {{pto.kernel}} {{\n{body.strip()}\nreturn\n}}\n}}"
    )


def refused(text: str, *args: Any, **options: Any) -> Diagnostic:
    with pytest.raises(PtoError) as caught:
        launch(parse(text, "k.pto"), args=list(args), **options)
    assert len(caught.value.diagnostics) == 1
    return caught.value.diagnostics[0]


def place(text: str, found: Diagnostic) -> str:
    """The line of the program that a finding stands at."""
    assert found.loc is not None and found.loc.file == "k.pto"
    return text.split("\n")[found.loc.line - 1].strip()


# ---- a copy of rows x cols elements, from an offset

VIEW = "!pto.tensor_view<8x16xf32>"
CONSTANTS = f"""
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c8 = arith.constant 8 : index
%c16 = arith.constant 16 : index
%at = arith.constant 0 : i64
%va = pto.make_tensor_view %a, shape = [%c8, %c16], strides = [%c16, %c1] : {VIEW}
%vb = pto.make_tensor_view %b, shape = [%c8, %c16], strides = [%c16, %c1] : {VIEW}
"""
TILE = "!pto.tile_buf<vec, 8x16xf32, valid=?x?>"
PART = "!pto.partition_tensor_view<?x?xf32>"
LOAD = f"pto.tload ins(%pa : {PART}) outs(%t : {TILE})"
STORE = f"pto.tstore ins(%t : {TILE}) outs(%pb : {PART})"
ALLOC = f"%t = pto.alloc_tile valid_row = %m valid_col = %n : {TILE}"


def window(name: str, view: str, row: str, rows: str, cols: str) -> str:
    return (
        f"%{name} = pto.partition_view %{view}, offsets = [%{row}, %c0], sizes = [%{rows}, %{cols}]"
        f" : {VIEW} -> {PART}"
    )


COPY = kernel(
    "%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %row: index, %m: index, %n: index",
    "\n".join(
        (
            CONSTANTS.strip(),
            window("pa", "va", "c0", "c8", "c16"),
            window("pb", "vb", "row", "m", "n"),
            ALLOC.replace("alloc_tile", "alloc_tile addr = %at"),
            f"%whole = pto.alloc_tile addr = %at valid_row = %c8 valid_col = %c16 : {TILE}",
            LOAD.replace("outs(%t", "outs(%whole"),
            STORE,
        )
    ),
)


def arrays() -> tuple[Any, Any]:
    return np.arange(128, dtype=np.float32), np.full(128, SENTINEL, np.float32)


def test_the_program_itself_is_right() -> None:
    a, b = arrays()
    launch(parse(COPY), args=[a, b, 2, 3, 5])
    got = b.reshape(8, 16)
    assert (got != SENTINEL).sum() == 15
    assert (got[2:5, :5] != SENTINEL).all()


@pytest.mark.parametrize(
    ("row", "m", "n"),
    [(0, 9, 16), (0, 8, 17), (0, -1, 16), (0, 8, -1), (6, 3, 4), (-1, 2, 2), (0, 1 << 62, 16)],
)
def test_a_partition_outside_its_view(row: int, m: int, n: int) -> None:
    a, b = arrays()
    before = b.tobytes()
    found = refused(COPY, a, b, row, m, n)
    assert found.code == "PTO-M006"
    assert place(COPY, found).startswith("%pb = pto.partition_view %vb")
    assert b.tobytes() == before


VALID = kernel(
    "%b: !pto.ptr<f32>, %m: index, %n: index",
    f"""
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%x = arith.constant 1.0 : f32
pto.store_scalar %x, %b[%c1] : !pto.ptr<f32>, f32
{ALLOC}
pto.store_scalar %x, %b[%c0] : !pto.ptr<f32>, f32
""",
)


@pytest.mark.parametrize(("m", "n"), [(9, 16), (8, 17), (-1, 16), (8, -1), (1 << 40, 1)])
def test_a_valid_region_that_a_tile_cannot_have(m: int, n: int) -> None:
    b = np.full(4, SENTINEL, np.float32)
    found = refused(VALID, b, m, n)
    assert found.code.startswith("PTO-V")
    assert place(VALID, found).startswith("%t = pto.alloc_tile")
    assert str(m) in found.message and str(n) in found.message
    assert b.tolist() == [SENTINEL, 1.0, SENTINEL, SENTINEL]  # what came before has happened


SET_VALID = kernel(
    "%m: index, %n: index",
    f"""
%c8 = arith.constant 8 : index
%c16 = arith.constant 16 : index
%t = pto.alloc_tile valid_row = %c8 valid_col = %c16 : {TILE}
pto.set_validshape %t, %m, %n : {TILE}
""",
)


@pytest.mark.parametrize(("m", "n"), [(9, 16), (8, 17), (-1, 0)])
def test_a_valid_region_set_later(m: int, n: int) -> None:
    found = refused(SET_VALID, m, n)
    assert found.code.startswith("PTO-V")
    assert place(SET_VALID, found).startswith("pto.set_validshape")


# ---- arrays too small


@pytest.mark.parametrize("which", [0, 1])
def test_an_array_too_small_for_its_view(which: int) -> None:
    given = list(arrays())
    given[which] = np.full(127, SENTINEL, np.float32)
    before = [array.tobytes() for array in given]
    found = refused(COPY, *given, 0, 8, 16)
    assert found.code == "PTO-M001"
    assert "outside the buffer of 508 bytes" in found.message
    assert place(COPY, found)
    assert [array.tobytes() for array in given] == before


BURST = kernel(
    "%a: !pto.ptr<f32, gm>, %n: i64",
    """
%c0 = arith.constant 0 : i64
%c1 = arith.constant 1 : i64
%ub = pto.castptr %c0 : i64 -> !pto.ptr<f32, ub>
pto.copy_ubuf_to_gm %ub, %a, %c0, %c1, %n, %c0, %n, %n
  : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64, i64, i64
""",
)


def test_a_burst_behind_the_end_of_an_array() -> None:
    a = np.full(16, SENTINEL, np.float32)
    launch(parse(BURST), args=[a, 32])
    assert a.tolist() == [0.0] * 8 + [SENTINEL] * 8
    a[:] = SENTINEL
    found = refused(BURST, a, 96)
    assert found.code.startswith("PTO-M")
    assert place(BURST, found).startswith("pto.copy_ubuf_to_gm")
    assert a.tolist() == [SENTINEL] * 16


# ---- arguments


def test_too_few_and_too_many_arguments() -> None:
    a, b = arrays()
    for given in ([a, b, 0, 8], [a, b, 0, 8, 16, 1], []):
        found = refused(COPY, *given)
        assert found.code == "PTO-U032"
        assert f"takes 5 arguments (%a, %b, %row, %m, %n), got {len(given)}" in found.message


@pytest.mark.parametrize(
    ("place_of", "value", "part"),
    [
        (0, 1.0, "%a is a pointer: it needs an array, got 1.0"),
        (1, [1.0, 2.0], "%b is a pointer: it needs an array"),
        (1, None, "%b is a pointer: it needs an array"),
        (2, np.zeros(3), "%row is a scalar of type index, got an array"),
        (3, "8", "%m is a scalar of type index, got '8'"),
        (3, None, "%m is a scalar of type index, got None"),
        (4, 2.5, "%n is index, which cannot be 2.5"),
        (4, float("nan"), "%n is index, which cannot be nan"),
        (4, float("inf"), "%n is index, which cannot be inf"),
        (4, 1 << 64, "%n is index, which cannot be 18446744073709551616"),
    ],
)
def test_an_argument_of_the_wrong_kind(place_of: int, value: Any, part: str) -> None:
    a, b = arrays()
    given: list[Any] = [a, b, 0, 8, 16]
    given[place_of] = value
    found = refused(COPY, *given)
    assert found.code == "PTO-U033"
    assert part in found.message
    assert (b == SENTINEL).all()


@pytest.mark.parametrize(
    ("type", "value", "wanted"),
    [("i8", -128, -128), ("i8", 255, -1), ("ui8", 255, 255), ("i1", True, 1), ("i32", 2.0, 2)],
)
def test_numbers_that_a_type_can_hold(type: str, value: Any, wanted: int) -> None:
    text = kernel(f"%x: {type}", f'pto.print ins("%d", %x : {type})')
    assert launch(parse(text), args=[value]).printed == (str(wanted),)


@pytest.mark.parametrize(
    ("type", "value"), [("i8", -129), ("i8", 256), ("ui8", -1), ("i1", 2), ("i32", 1 << 32)]
)
def test_numbers_that_a_type_cannot_hold(type: str, value: int) -> None:
    found = refused(kernel(f"%x: {type}", f'pto.print ins("%d", %x : {type})'), value)
    assert (found.code, found.message) == ("PTO-U033", f"%x is {type}, which cannot be {value}")


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int16, np.complex64, object])
def test_an_array_of_another_element_type(dtype: Any) -> None:
    a, b = arrays()
    found = refused(COPY, a.astype(dtype), b, 0, 8, 16)
    assert found.code == "PTO-T194"
    assert "%a points to f32" in found.message


def test_arrays_that_memory_cannot_be_laid_over_are_copied_and_given_back() -> None:
    a, b = arrays()
    spread = np.zeros(256, np.float32)[::2]
    frozen = a.copy()
    frozen.flags.writeable = b.flags.writeable = False
    launch(parse(COPY), args=[frozen, spread, 0, 8, 16])
    assert np.array_equal(spread, a)
    with pytest.raises(PtoError, match="PTO-M194"):
        launch(parse(COPY), args=[a, b, 0, 8, 16])
    assert (b == SENTINEL).all()


@pytest.mark.parametrize("blocks", [0, -1, (4, 0), (-1, -1), 2.5, None])
def test_a_grid_without_blocks(blocks: Any) -> None:
    a, b = arrays()
    assert refused(COPY, a, b, 0, 8, 16, blocks=blocks).code == "PTO-U039"


# ---- types and shapes that only a run can know


def test_a_store_into_a_smaller_view() -> None:
    text = kernel(
        "%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %m: index, %n: index",
        "\n".join(
            (
                CONSTANTS.strip(),
                window("pa", "va", "c0", "c8", "c16"),
                window("pb", "vb", "c0", "m", "n"),
                f"%t = pto.alloc_tile valid_row = %c8 valid_col = %c16 : {TILE}",
                LOAD,
                STORE,
            )
        ),
    )
    a, b = arrays()
    launch(parse(text), args=[a, b, 8, 16])
    assert b.tobytes() == a.tobytes()
    b[:] = SENTINEL
    found = refused(text, a, b, 4, 16)
    assert place(text, found).startswith("pto.tstore")
    assert (b == SENTINEL).all()


# ---- arithmetic and loops


def test_division_by_zero() -> None:
    text = kernel(
        "%out: !pto.ptr<i32>, %n: i32",
        """
%c0 = arith.constant 0 : index
%c7 = arith.constant 7 : i32
%q = arith.divsi %c7, %n : i32
pto.store_scalar %q, %out[%c0] : !pto.ptr<i32>, i32
""",
    )
    out = np.array([9], np.int32)
    launch(parse(text), args=[out, 2])
    assert out[0] == 3
    found = refused(text, out, 0)
    assert (found.code, found.message) == ("PTO-S132", "integer division of 7 by zero")
    assert place(text, found) == "%q = arith.divsi %c7, %n : i32"
    assert out[0] == 3


@pytest.mark.parametrize("step", [0, -1])
def test_a_loop_that_would_not_end(step: int) -> None:
    text = kernel(
        "%out: !pto.ptr<i32>, %s: index",
        """
%c0 = arith.constant 0 : index
%c4 = arith.constant 4 : index
%x = arith.constant 5 : i32
scf.for %i = %c0 to %c4 step %s {
pto.store_scalar %x, %out[%i] : !pto.ptr<i32>, i32
}
""",
    )
    out = np.zeros(4, np.int32)
    found = refused(text, out, step)
    assert found.code == "PTO-S130"
    assert str(step) in found.message
    assert place(text, found).startswith("scf.for")
    assert out.tolist() == [0, 0, 0, 0]


def test_trap() -> None:
    text = kernel(
        "%out: !pto.ptr<i32>, %stop: i1",
        """
%c0 = arith.constant 0 : index
%x = arith.constant 5 : i32
scf.if %stop {
pto.trap
}
pto.store_scalar %x, %out[%c0] : !pto.ptr<i32>, i32
""",
    )
    out = np.zeros(1, np.int32)
    found = refused(text, out, 1, blocks=2)
    assert (found.code, found.message) == ("PTO-S135", "block 0 reached pto.trap")
    assert place(text, found) == "pto.trap"
    assert out[0] == 0
    launch(parse(text), args=[out, 0])
    assert out[0] == 5


def test_a_pointer_into_a_local_buffer_is_no_argument() -> None:
    text = "func.func @k(%p: !pto.ptr<f32, l0a>) attributes {pto.kernel} {\n  return\n}"
    with pytest.raises(PtoError, match=r"%p is a pointer into l0a, which a host value cannot be"):
        launch(parse(text), args=[np.zeros(8, np.float32)])
