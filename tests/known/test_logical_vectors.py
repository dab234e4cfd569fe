"""Logical vectors: any number of lanes, from the formulas of the manual written out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from tests.machine import Bench


class Logical(Bench):
    """Values by name, as in `Bench`, and logical vectors and masks."""

    def vector(self, name: str, elem: str, values: Any) -> None:
        array = np.asarray(values).astype(dtype(elem).numpy)
        self.values[name] = array
        self.types[name] = f"!pto.vmi.vreg<{array.size}x{elem}>"

    def mask(self, name: str, lanes: Sequence[int]) -> None:
        self.values[name] = np.array(lanes, bool)
        self.types[name] = f"!pto.vmi.mask<{len(lanes)}xpred>"

    def results(self, body: str, *types: str) -> list[Any]:
        names = "; ".join(f"%r{n} : {type}" for n, type in enumerate(types))
        return self.run(body, results=names)


def vreg(count: int, elem: str) -> str:
    return f"!pto.vmi.vreg<{count}x{elem}>"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vadd", [5, 0, -1, 0]),
        ("vmul", [4, 0, -6, 0]),
        ("vmax", [4, 0, 2, 0]),
        ("vsub", [-3, 0, -5, 0]),
    ],
)
def test_lanes_whose_mask_is_off_are_zero(name: str, expected: list[float]):
    bench = Logical()
    bench.vector("a", "f32", [1, 2, -3, 9])
    bench.vector("b", "f32", [4, 5, 2, 9])
    bench.mask("m", [1, 0, 1, 0])
    (found,) = bench.results(
        f"%r0 = pto.vmi.{name} %a, %b, %m : {{a}}, {{b}}, {{m}} -> {{a}}", vreg(4, "f32")
    )
    assert found.tolist() == expected


def test_signless_integers_are_ordered_as_unsigned():
    bench = Logical()
    bench.vector("a", "i8", [-1, 5])
    bench.vector("b", "i8", [1, 6])
    bench.vector("c", "si8", [-1, 5])
    bench.vector("d", "si8", [1, 6])
    for x, y, elem, expected in (("a", "b", "i8", [-1, 6]), ("c", "d", "si8", [1, 6])):
        body = f"%r0 = pto.vmi.vmax %{x}, %{y} : {{{x}}}, {{{y}}} -> {{{x}}}"
        assert bench.results(body, vreg(2, elem))[0].tolist() == expected


def test_a_product_in_two_words():
    bench = Logical()
    bench.vector("a", "ui32", [0xFFFFFFFF, 3])
    bench.mask("m", [1, 1])
    low, high = bench.results(
        "%r0, %r1 = pto.vmi.vmull %a, %a, %m : {a}, {a}, {m} -> {a}, {a}",
        vreg(2, "ui32"),
        vreg(2, "ui32"),
    )
    assert low.tolist() == [1, 9] and high.tolist() == [0xFFFFFFFE, 0]


def test_groups_fold_to_slots_and_slots_spread_over_groups():
    bench = Logical()
    bench.vector("a", "f32", [1, 2, 3, 4, 5, 6, 7, 8])
    bench.mask("m", [1, 1, 0, 1, 1, 1, 1, 0])
    slots, back = bench.results(
        "%r0 = pto.vmi.vcadd %a, %m {group = 2, reassoc} : {a}, {m} -> !pto.vmi.vreg<2xf32>\n"
        "%r1 = pto.vmi.vbrc %r0 {group = 2} : !pto.vmi.vreg<2xf32> -> {a}",
        vreg(2, "f32"),
        vreg(8, "f32"),
    )
    assert slots.tolist() == [7, 18] and back.tolist() == [7] * 4 + [18] * 4
    bench.mask("n", [1, 1, 1, 1, 0, 0, 0, 0])
    (top,) = bench.results(
        "%r0 = pto.vmi.vcmax %a, %n {group = 2} : {a}, {n} -> !pto.vmi.vreg<2xf32>", vreg(2, "f32")
    )
    assert top.tolist() == [4, -np.inf]


def test_ramps_start_anew_in_each_group():
    bench = Logical()
    bench.scalar("b", "i32", 10)
    (found,) = bench.results(
        '%r0 = pto.vmi.vci %b {order = "DESC", group = 2} : i32 -> !pto.vmi.vreg<6xi32>',
        vreg(6, "i32"),
    )
    assert found.tolist() == [10, 9, 8, 10, 9, 8]


def test_masks_of_leading_lanes():
    bench = Logical()
    bench.scalar("n", "index", 2)
    plain, grouped = bench.results(
        "%r0 = pto.vmi.create_mask %n : index -> !pto.vmi.mask<6xpred>\n"
        "%r1 = pto.vmi.create_group_mask %n {num_groups = 2, group_size = 3}"
        " : index -> !pto.vmi.mask<6xpred>",
        "!pto.vmi.mask<6xpred>",
        "!pto.vmi.mask<6xpred>",
    )
    assert plain.tolist() == [1, 1, 0, 0, 0, 0] and grouped.tolist() == [1, 1, 0, 1, 1, 0]


def test_interleaving_and_its_inverse():
    bench = Logical()
    bench.vector("a", "i16", [0, 1, 2, 3])
    bench.vector("b", "i16", [10, 11, 12, 13])
    bench.mask("m", [1, 1, 1, 1])
    low, high, even, odd = bench.results(
        "%r0, %r1 = pto.vmi.vintlv %a, %b, %m : {a}, {b}, {m} -> {a}, {a}\n"
        "%r2, %r3 = pto.vmi.vdintlv %r0, %r1, %m : {a}, {a}, {m} -> {a}, {a}",
        *[vreg(4, "i16")] * 4,
    )
    assert low.tolist() == [0, 10, 1, 11] and high.tolist() == [2, 12, 3, 13]
    assert even.tolist() == [0, 1, 2, 3] and odd.tolist() == [10, 11, 12, 13]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("[%at]", [4, 5, 6, 7]),
        ("[%at], %stride {group = 2}", [4, 5, 24, 25]),
        ("[%at], %stride {group = 4}", [4, 24, 44, 64]),
        ('[%at] {dist_mode = "brc"}', [4] * 4),
        ('[%at], %stride {dist_mode = "brc", group = 2}', [4, 4, 24, 24]),
    ],
)
def test_loads_by_runs_rows_and_single_elements(form: str, expected: list[int]):
    bench = Logical()
    bench.pointer("p", "i32, ub", np.arange(256))
    bench.scalar("at", "index", 4)
    bench.scalar("stride", "index", 20)
    body = f"%r0 = pto.vmi.vload %p{form} : {{p}} -> !pto.vmi.vreg<4xi32>"
    assert bench.results(body, vreg(4, "i32"))[0].tolist() == expected


def test_blocks_are_so_many_blocks_apart():
    bench = Logical()
    bench.pointer("p", "i32, ub", np.arange(256))
    bench.scalar("at", "index", 8)
    bench.scalar("step", "i16", 3)
    (found,) = bench.results(
        "%r0 = pto.vmi.vload %p[%at], %step : {p}, i16 -> !pto.vmi.vreg<16xi32>", vreg(16, "i32")
    )
    assert found.tolist() == [*range(8, 16), *range(32, 40)]


def test_narrow_elements_in_wide_lanes_and_back():
    bench = Logical()
    live = bench.pointer("p", "ui8, ub", np.arange(200, 264) % 256)
    bench.scalar("at", "index", 0)
    bench.scalar("to", "index", 32)
    (found,) = bench.results(
        '%r0 = pto.vmi.vload %p[%at] {dist_mode = "unpack"} : {p} -> !pto.vmi.vreg<8xui16>\n'
        "pto.vmi.vstore %r0, %p[%to] : !pto.vmi.vreg<8xui16>, {p}",
        vreg(8, "ui16"),
    )
    assert found.tolist() == list(range(200, 208))
    assert live[32:40].tolist() == list(range(200, 208))


def test_stores_leave_lanes_that_are_off():
    bench = Logical()
    live = bench.pointer("p", "f32, ub", np.zeros(16))
    bench.vector("v", "f32", [1, 2, 3, 4])
    bench.mask("m", [0, 1, 1, 0])
    bench.scalar("at", "index", 8)
    bench.run("pto.vmi.vstore %v, %p[%at], %m : {v}, {p}, {m}")
    assert live.tolist() == [0] * 9 + [2, 3] + [0] * 5


def test_gather_and_scatter_count_elements():
    bench = Logical()
    live = bench.pointer("p", "f32, ub", np.arange(64))
    bench.vector("i", "ui32", [3, 60, 0, 7])
    bench.mask("m", [1, 1, 0, 1])
    (found,) = bench.results(
        "%r0 = pto.vmi.vgather %p, %i, %m : {p}, {i}, {m} -> !pto.vmi.vreg<4xf32>", vreg(4, "f32")
    )
    assert found.tolist() == [3, 60, 0, 7]
    bench.vector("v", "f32", [-1, -2, -3, -4])
    bench.run("pto.vmi.vscatter %v, %p, %i, %m : {v}, {p}, {i}, {m}")
    assert [live[n] for n in (3, 60, 0, 7)] == [-1, -2, 0, -4]


def test_conversions_keep_the_number_of_lanes():
    bench = Logical()
    bench.vector("f", "f32", [1.5, -2.5, 300, 7e9])
    bench.vector("u", "ui8", [1, 255])
    half, word, wide = bench.results(
        '%r0 = pto.vmi.vcvt %f {rounding = "R", saturate = "SAT"} : {f} -> !pto.vmi.vreg<4xbf16>\n'
        '%r1 = pto.vmi.vcvt %f {rounding = "Z", saturate = "SAT"} : {f} -> !pto.vmi.vreg<4xsi32>\n'
        "%r2 = pto.vmi.vcvt %u : {u} -> !pto.vmi.vreg<2xi16>",
        vreg(4, "bf16"),
        vreg(4, "si32"),
        vreg(2, "i16"),
    )
    expected = np.array([1.5, -2.5, 300, 7e9], np.float32).astype(ml_dtypes.bfloat16)
    assert half.tolist() == expected.tolist()
    assert word.tolist() == [1, -2, 300, 2**31 - 1]
    assert wide.tolist() == [1, 255]


def test_pairs_of_bf16_become_pairs_of_float4():
    bench = Logical()
    numbers = np.array([0.5, -1, 6, 3], ml_dtypes.bfloat16)
    bench.vector("b", "bf16", numbers)
    (found,) = bench.results(
        "%p = pto.vmi.vinterpret_cast %b : {b} -> !pto.vmi.vreg<2x!pto.bf16x2>\n"
        '%r0 = pto.vmi.vcvt %p {rounding = "R"}'
        " : !pto.vmi.vreg<2x!pto.bf16x2> -> !pto.vmi.vreg<2x!pto.f4E2M1x2>",
        vreg(2, "!pto.f4E2M1x2"),
    )
    # e2m1: 0.5 is 1, -1 is 0b1010, 6 is 7, 3 is 5; the first of a pair is the low nibble
    assert found.view(np.uint8).tolist() == [0xA1, 0x57]


def test_merging_has_nothing_to_keep():
    bench = Logical()
    bench.vector("a", "f32", [1, 2])
    bench.mask("m", [1, 0])
    with pytest.raises(PtoError, match="merge"):
        bench.run(
            '%r = pto.vmi.vadd %a, %a, %m {pmode = "merge"} : {a}, {a}, {m} -> {a}',
        )
