"""Typical mistakes: each gives a code, the user's line with a caret, and what to do about it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa

F32 = pto.Global[pto.f32]


def wrong_order(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f32)
    isa.tload(x, t)  # here


def wrong_role(x: F32, y: F32) -> None:
    a = pto.tile(16, 128, pto.f32)
    b = pto.tile(128, 16, pto.f32)
    c = pto.tile(16, 16, pto.f32, role="acc")
    isa.tmatmul(c, a, b)  # here


def wrong_type(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f32)
    isa.tload(t, x)
    isa.tand(t, t, t)  # here


def too_big(x: F32, y: F32) -> None:
    t = pto.tile(1024, 128, pto.f32)  # here
    isa.tload(t, x)
    isa.tstore(y, t)


def too_few(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f32)
    isa.tadd(t, t)  # here


def tile_as_a_condition(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f32)
    if t:  # here
        isa.tload(t, x)


def python_range(x: F32, y: F32) -> None:
    for _ in range(pto.block_num()):  # here
        pass


def two_regions(x: F32, y: F32) -> None:
    a = pto.tile(16, 128, pto.f32)
    b = pto.tile(16, 128, pto.f32)
    isa.tload(a, x[0:8, :])
    isa.tload(b, x[0:4, :])
    isa.tadd(a, a, b)  # here


def number_for_a_tile(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f32)
    isa.tadd(t, t, 1.0)  # here


def unknown_word(x: F32, y: F32) -> None:
    isa.set_flag("MTE2", "VEC", 0)  # here


def size_of_the_program(x: F32, y: F32) -> None:
    pto.tile(pto.block_num(), 128, pto.f32)  # here


def does_not_fit_the_view(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f32)
    isa.tload(t, x)
    isa.tstore(y[0:8, :], t)  # here


def unplaced_neighbour(x: F32, y: F32) -> None:
    a = pto.tile(16, 128, pto.f32, address=0)
    b = pto.tile(16, 128, pto.f32, address=0x100)
    isa.tload(a, x)
    isa.tload(b, x)
    isa.tadd(a, a, b)
    isa.tstore(y, a)


def bound_in_one_branch(x: F32, y: F32) -> None:
    if pto.block_idx() > 0:
        n = 5.0
    isa.tmuls(pto.tile(16, 128, pto.f32), pto.tile(16, 128, pto.f32), n)  # here


def bound_to_two_kinds(x: F32, y: F32) -> None:
    n = 5.0
    if pto.block_idx() > 0:
        n = "five"
    isa.tmuls(pto.tile(16, 128, pto.f32), pto.tile(16, 128, pto.f32), n)  # here


def nothing_at_first(x: F32, y: F32) -> None:
    last = None
    for _ in pto.range(10):  # here
        if last is not None:
            pto.store(y, last)
        last = pto.load(x, 16, 128)


def tiles_of_two_shapes(x: F32, y: F32) -> None:
    t = pto.load(x, 16, 128)
    for _ in pto.range(4):  # here
        t = pto.load(x[0:8, :], 8, 128)
    pto.store(y, t)


def bound_in_a_loop_that_may_not_run(x: F32, y: F32) -> None:
    for i in pto.range(pto.block_num()):
        n = i
    pto.store(y[n:, :], pto.load(x, 16, 128))  # here


def too_large_for_i16(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.i16)
    isa.tadds(t, t, 40000)  # here


def too_large_for_i8(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.i8)
    isa.tadds(t, t, 1000)  # here


def too_large_for_f16(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f16)
    isa.tadds(t, t, 1e6)  # here


def too_large_for_an_index(x: F32, y: F32) -> None:
    pto.block_idx() + (1 << 70)  # here


def a_tile_for_a_number(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f32)
    isa.tadds(t, t, t)  # here


def an_element_for_a_number(x: F32, y: F32) -> None:
    t = pto.tile(16, 128, pto.f32)
    isa.tadds(t, t, x[0, 0])  # here


def behind_the_end(x: F32, y: F32) -> None:
    isa.tload(pto.tile(16, 128, pto.f32), x[600:, :])  # here


def an_empty_slice(x: F32, y: F32) -> None:
    isa.tload(pto.tile(16, 128, pto.f32), x[8:4, :])  # here


def walked(x: F32, y: F32) -> None:
    for _ in x:  # here
        pass


def raised_in_a_branch(x: F32, y: F32) -> None:
    if pto.block_idx() > 0:
        raise ValueError("blocks")  # here
    isa.tload(pto.tile(16, 128, pto.f32), x)


def zeros_like_an_array(x: F32, y: F32) -> None:
    pto.zeros_like(x)  # here


def calls_a_kernel(x: F32, y: F32) -> None:
    pto.kernel(wrong_order)(x, y)  # here


def _ever(x: Any) -> None:
    _ever(x)


def calls_without_end(x: F32, y: F32) -> None:
    _ever(x)


MISTAKES: list[tuple[Callable[..., Any], str, str]] = [
    (wrong_order, "PTO-T204", "the destination comes first: tload(dst, src)"),
    (wrong_role, "PTO-L020", "expects lhs to be in left: it is in vec"),
    (wrong_type, "PTO-T024", "f32"),
    (too_big, "PTO-M105", "524,288 bytes is larger than ub"),
    (too_few, "PTO-U205", "the call is tadd(dst, src0, src1)"),
    (tile_as_a_condition, "PTO-T206", "a tile has many"),
    (python_range, "PTO-U203", "for i in pto.range(n)"),
    (two_regions, "PTO-S021", "src1 is 4x128, dst is 8x128"),
    (number_for_a_tile, "PTO-T200", "the order is tadd(dst, src0, src1)"),
    (unknown_word, "PTO-T201", "PIPE_V"),
    (size_of_the_program, "PTO-U203", "the valid region follows the data"),
    (does_not_fit_the_view, "PTO-S062", "1024"),
    (bound_in_one_branch, "PTO-U217", "bound only where one of the branches is taken"),
    (bound_to_two_kinds, "PTO-U217", "it is 'five' or 5.0"),
    (nothing_at_first, "PTO-U217", "it is None, then a tile of 16x128 f32"),
    (tiles_of_two_shapes, "PTO-U217", "a tile of 16x128 f32 or a tile of 8x128 f32"),
    (bound_in_a_loop_that_may_not_run, "PTO-U217", "it may not run"),
    (too_large_for_i16, "PTO-T202", "40000 does not fit i16"),
    (too_large_for_i8, "PTO-T202", "from -128 to 127"),
    (too_large_for_f16, "PTO-T202", "from -65504.0 to 65504.0"),
    (too_large_for_an_index, "PTO-T202", "does not fit index"),
    (a_tile_for_a_number, "PTO-T200", "of two tiles, write a + b"),
    (an_element_for_a_number, "PTO-T200", "isa.load_scalar(x, i)"),
    (behind_the_end, "PTO-S201", "a slice from 600 on: the dimension has 16"),
    (an_empty_slice, "PTO-S201", "from 8 to 4 is empty"),
    (walked, "PTO-U081", "for i in pto.range"),
    (raised_in_a_branch, "PTO-U206", "write `assert condition, message`"),
    (zeros_like_an_array, "PTO-T200", "like a tile"),
    (calls_a_kernel, "PTO-U212", "wrong_order.function(...)"),
]


@pytest.mark.parametrize(
    ("function", "code", "words"), MISTAKES, ids=lambda v: getattr(v, "__name__", "")
)
def test_mistake_is_explained_at_the_line(function: Callable[..., Any], code: str, words: str):
    x = np.zeros((16, 128), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(function)(x, x.copy())
    lines, first = inspect.getsourcelines(function)
    line = first + next(n for n, text in enumerate(lines) if "# here" in text)
    finding = next(d for d in caught.value.diagnostics if d.code == code)
    assert finding.loc is not None
    assert (finding.loc.file, finding.loc.line) == (__file__, line)
    text = str(caught.value)
    assert words in text
    assert lines[line - first].rstrip() in text
    assert re.search(r"\| +\^+\n", text)


def test_caret_covers_the_call():
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(too_few)(np.zeros((16, 128), np.float32), np.zeros((16, 128), np.float32))
    loc = caught.value.diagnostics[0].loc
    assert loc is not None
    source = inspect.getsource(too_few).splitlines()[2]
    assert source[loc.col - 1 : (loc.end or 0) - 1] == "isa.tadd(t, t)"


def test_overlapping_tiles_are_found_without_a_run():
    x = np.zeros((16, 128), np.float32)
    found = pto.kernel(unplaced_neighbour).check("a5", x, x)
    assert [d.code for d in found] == ["PTO-M106", "PTO-M040"]
    assert "address=0x100" in str(found)


def test_wrong_type_for_the_profile_names_where_it_is_legal():
    @pto.kernel(profile="a5")
    def narrow(x: pto.Global[pto.i8], y: pto.Global[pto.i8]) -> None:
        t = pto.tile(16, 128, pto.i8)
        isa.tload(t, x)
        isa.tadd(t, t, t)
        isa.tstore(y, t)

    x = np.ones((16, 128), np.int8)
    y = np.zeros_like(x)
    narrow(x, y)
    assert (y == 2).all()
    found = narrow.check("a2a3")
    assert "PTO-X011" in {d.code for d in found}
    assert "legal under a5" in str(found)


def test_tile_used_after_its_kernel():
    kept: list[Any] = []

    @pto.kernel
    def first(x: F32) -> None:
        kept.append(pto.tile(16, 128, pto.f32))

    @pto.kernel
    def second(x: F32) -> None:
        isa.tload(kept[0], x)

    x = np.zeros((16, 128), np.float32)
    first(x, coverage=False)
    with pytest.raises(pto.PtoError) as caught:
        second(x)
    assert caught.value.code == "PTO-U201"
    assert "kernel first" in str(caught.value)


@pytest.mark.parametrize(
    ("act", "code", "instruction"),
    [
        (lambda t: t.to(pto.i32) // 2, "PTO-U081", "t.to(pto.f32) // 3.0"),
        (lambda t: t.__setitem__((0, 0, 0), 1.0), "PTO-S200", "t[3, 5] one element"),
    ],
)
def test_what_a_tile_does_not_have_names_what_to_write(act: Any, code: str, instruction: str):
    with pto.eager("a5"):
        t = pto.tile(16, 64, pto.f32)
        with pytest.raises(pto.PtoError) as caught:
            act(t)
    assert caught.value.code == code
    assert instruction in str(caught.value)


@pytest.mark.parametrize("shape", [(16, 100), (20, 64), (2, 16, 64), (2, 3, 4, 64)])
def test_an_array_that_the_tile_cannot_hold_is_not_cut_in_silence(shape: tuple[int, ...]):
    @pto.kernel
    def cut(x: F32, y: F32) -> None:
        t = pto.tile(16, 64, pto.f32)
        isa.tload(t, x)
        isa.tstore(y, t)

    x = np.zeros(shape, np.float32)
    with pytest.raises(pto.PtoError) as caught:
        cut(x, x.copy())
    assert caught.value.code == "PTO-U080"
    fits = np.zeros((2, 8, 64), np.float32)
    cut(fits, fits.copy())
    with pytest.raises(pto.PtoError) as caught:
        cut(fits, x)
    assert caught.value.code == "PTO-U080", "nor is a part of a result written in silence"


def test_an_array_whose_parameter_is_not_annotated_is_named():
    @pto.kernel
    def plain(x: Any, y: F32) -> None:
        isa.tload(pto.tile(16, 64, pto.f32), x)

    x = np.zeros((16, 64), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        plain(x, x.copy())
    assert "x: pto.Global[pto.f32]" in str(caught.value)


def test_a_wrong_name_is_answered_with_right_ones():
    with pytest.raises(AttributeError, match=r"`tcos`|`tload`|`tlog`"):
        _ = isa.tlogs


def test_an_instruction_of_pto_itself_is_answered_with_its_place():
    with pytest.raises(AttributeError, match=r"from pto import isa.*isa\.tadd"):
        _ = pto.tadd


@pytest.mark.parametrize("word", ["ALL", "vv", "VST"])
def test_a_part_of_a_word_is_refused_with_the_words(word: str):
    @pto.kernel
    def fence(x: F32) -> None:
        with pto.vecscope():
            isa.mem_bar(word)

    with pytest.raises(pto.PtoError) as caught:
        fence(np.zeros(64, np.float32))
    assert caught.value.code == "PTO-T201"
    assert "VV_ALL" in str(caught.value)
    assert "ST_ST" in str(caught.value)


@pytest.mark.parametrize("kinds", [(np.int32, pto.f32), (np.float16, pto.bf16), (np.uint8, pto.i8)])
def test_a_transfer_between_types_of_one_size_is_no_conversion(kinds: tuple[Any, Any]):
    array, kind = kinds

    @pto.kernel
    def load(x: pto.Global[Any], y: pto.Global[Any]) -> None:
        t = pto.tile(16, 64, kind)
        isa.tload(t, x)
        isa.tstore(y, t)

    @pto.kernel
    def bits(x: pto.Global[Any], y: pto.Global[Any]) -> None:
        t = pto.tile(16, 64, kind)
        isa.tload(t, x.view(kind))
        isa.tstore(y.view(kind), t)

    x = np.arange(1024, dtype=array).reshape(16, 64)
    with pytest.raises(pto.PtoError) as caught:
        load(x, x.copy())
    assert caught.value.code == "PTO-T208"
    assert "pto.tcvt" in str(caught.value)
    assert f"x.view(pto.{kind})" in str(caught.value)
    y = np.zeros_like(x)
    bits(x, y)
    assert np.array_equal(x, y)


def test_an_array_of_bits_is_no_array_of_numbers():
    @pto.kernel
    def plain(x: F32) -> None:
        isa.tload(pto.tile(16, 64, pto.f32), x)

    with pytest.raises(pto.PtoError) as caught:
        plain(np.zeros((16, 64), np.uint32))
    assert caught.value.code == "PTO-U213"


def test_names_of_a_body_may_be_bound_where_nobody_else_reads_them():
    @pto.kernel
    def bodies(x: F32, y: F32) -> None:
        t, k = pto.tile(16, 64, pto.f32), 1.0
        isa.tload(t, x)
        for i in pto.range(3):
            k = i.to(pto.f32)
            rows = 16.0
            isa.tadds(t, t, k)
        if pto.block_idx() > 0:
            m = 3.0
            isa.tadds(t, t, m)
        else:
            m = 4.0
            isa.tadds(t, t, m)
        for _ in pto.range(2):
            k = 2.0
            isa.tadds(t, t, k)
        isa.tadds(t, t, rows)
        isa.tstore(y, t)

    x = np.zeros((16, 64), np.float32)
    y = np.zeros_like(x)
    bodies(x, y)
    assert (y == 3 + 4 + 4 + 16).all()


def _assigned(x: F32, y: F32) -> None:
    y[0:16] = pto.tile(16, 64, pto.f32)


def _sorted_by_numbers_of_the_program(x: F32, y: F32) -> None:
    sorted([pto.block_idx(), pto.block_num()])


def _endless(x: F32, y: F32) -> None:
    _endless(x, y)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (_assigned, "PTO-U081"),
        (_sorted_by_numbers_of_the_program, "PTO-U202"),
        (_endless, "PTO-U218"),
    ],
)
def test_what_python_would_answer_with_a_traceback_is_a_finding(function: Any, code: str):
    x = np.zeros((16, 64), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(function)(x, x.copy())
    assert caught.value.code == code


def test_a_masked_array_is_refused():
    @pto.kernel
    def plain(x: F32) -> None:
        isa.tload(pto.tile(16, 64, pto.f32), x)

    x = np.ones((16, 64), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        plain(np.ma.masked_array(x, mask=x > 0))
    assert caught.value.code == "PTO-U191"


@pytest.mark.parametrize("program", [None, 3, b"k.pto", np.zeros(3), pto.kernel(wrong_order)])
@pytest.mark.parametrize("function", [pto.check, pto.launch, pto.sanitize])
def test_what_is_no_program_is_refused(function: Any, program: Any):
    with pytest.raises(pto.PtoError) as caught:
        function(program)
    assert caught.value.code == "PTO-U194"


async def _awaits(x: F32) -> None: ...


def _yields(x: F32) -> Any:
    yield x


@pytest.mark.parametrize("given", [int, print, _awaits, _yields, pto.kernel(wrong_order)])
def test_a_kernel_is_made_of_a_function(given: Any):
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(given)
    assert caught.value.code == "PTO-U223"


def test_a_method_is_no_kernel_and_one_of_an_object_is():
    class Net:
        scale = 3.0

        def scaled(self, x: F32, y: F32) -> None:
            pto.store(y, pto.load(x, 16, 64) * self.scale)

        @staticmethod
        def same(x: F32, y: F32) -> None: ...

    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(Net.scaled)
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-U223" and "scaled is a method: it takes self" in found.message
    assert "pto.kernel(net.scaled)" in (found.help or "")
    with pytest.raises(pto.PtoError, match="not of a staticmethod") as caught:
        pto.kernel(vars(Net)["same"])
    assert "@staticmethod above @pto.kernel" in (caught.value.diagnostics[0].help or "")
    y = np.zeros((16, 64), np.float32)
    pto.kernel(Net().scaled)(np.ones_like(y), y)
    assert y.min() == 3


def test_a_number_of_the_program_is_named_as_in_python():
    def k(x: F32, n: pto.Scalar[pto.i32]) -> None:
        total = n + 1
        float(total)

    with pytest.raises(pto.PtoError, match="`total` is known only when the kernel runs"):
        pto.kernel(k).module(np.zeros((16, 64), np.float32), 3)


@pto.kernel
def _plain(x: F32, y: F32, n: pto.i32 = 0) -> None:  # type: ignore[assignment]
    t = pto.tile(16, 64, pto.f32)
    isa.tload(t, x)
    isa.tstore(y, t)


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda x: _plain[2.5](x, x), "PTO-U039"),
        (lambda x: _plain[None](x, x), "PTO-U039"),
        (lambda x: _plain[10**30](x, x), "PTO-U039"),
        (lambda x: _plain[1, 2, 3, 4](x, x), "PTO-U039"),
        (lambda x: _plain.sanitize(x, x, blocks=(1, 1, 1, 1)), "PTO-U039"),
        (lambda x: _plain.sanitize(x, x, blocks="2"), "PTO-U039"),
        (lambda x: pto.Device("a5").stream().launch(_plain[0], x, x), "PTO-U039"),
        (lambda x: _plain(x, x, "1"), "PTO-U033"),
        (lambda x: _plain(x, x, 1 << 40), "PTO-U033"),
        (lambda x: _plain(x, x, timeout="1"), "PTO-U094"),
        (lambda x: _plain.check("a9"), "PTO-U020"),
        (lambda x: pto.kernel(profile="a9")(wrong_order), "PTO-U020"),
        (lambda x: _plain.on(5), "PTO-U020"),  # type: ignore[arg-type]
        (lambda x: _plain(x, x, engine="fast"), "PTO-U072"),
    ],
)
def test_a_wrong_launch_is_shown_at_its_line(act: Any, code: str):
    with pytest.raises(pto.PtoError) as caught:
        act(np.zeros((16, 64), np.float32))
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.loc is not None
    assert (found.loc.file, found.loc.line) == (__file__, act.__code__.co_firstlineno)


def test_a_result_that_is_read_only_is_found_before_the_run():
    y = np.zeros((16, 64), np.float32)
    y.flags.writeable = False
    with pytest.raises(pto.PtoError) as caught:
        _plain(np.zeros((16, 64), np.float32), y)
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-M194"
    assert found.loc is not None and found.loc.file == __file__


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_is_an_array():
    x, y = np.matrix(np.ones((16, 64), np.float32)), np.zeros((16, 64), np.float32)
    assert isinstance(x, np.matrix)
    _plain(x, y)
    assert (y == 1).all()


def test_programs_may_be_paths():
    path = Path(__file__).parents[2] / "examples" / "add.pto"
    assert not pto.check(path)
    assert not pto.check(str(path))
    with pytest.raises(pto.PtoError) as caught:
        pto.launch(path)
    assert caught.value.code == "PTO-U032"


def test_recursion_is_shown_where_it_calls():
    x = np.zeros((16, 128), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        pto.kernel(calls_without_end)(x, x.copy())
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-U218"
    assert found.loc is not None and found.loc.line == _ever.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("array", "code", "words"),
    [
        (np.zeros((0, 64), np.float32), "PTO-U212", "x has no elements: its shape is (0, 64)"),
        (np.zeros((16, 64), ">f4"), "PTO-U213", "which is big-endian"),
    ],
)
def test_an_array_that_cannot_be_an_argument(array: Any, code: str, words: str):
    with pytest.raises(pto.PtoError) as caught:
        _plain(array, np.zeros((16, 64), np.float32))
    assert caught.value.code == code
    assert words in str(caught.value)


def test_a_region_that_does_not_fit_names_what_sets_it():
    @pto.kernel
    def tail(x: F32, y: F32) -> None:
        i = pto.block_idx() * 16
        t, sums = pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)
        isa.texpands(sums, 0.0)
        isa.tload(t, x[i:, :])
        isa.tadd(sums, sums, t)
        isa.tstore(y[i:, :], sums)

    @pto.kernel
    def filled(x: F32, y: F32) -> None:
        i = pto.block_idx() * 16
        sums = pto.tile(16, 64, pto.f32)
        isa.texpands(sums, 0.0)
        isa.tstore(y[i:, :], sums)

    x = np.zeros((20, 64), np.float32)
    for kernel, code in ((tail, "PTO-S021"), (filled, "PTO-M006")):
        with pytest.raises(pto.PtoError) as caught:
            kernel[2](x, x.copy())
        assert caught.value.code == code
        assert "set_validshape" in str(caught.value)
        assert "pto.zeros_like(t)" in str(caught.value)


def test_sizes_may_be_numbers_of_numpy():
    @pto.kernel
    def sized(x: F32, y: F32) -> None:
        t = pto.tile(np.int32(16), np.int64(64), pto.f32)
        isa.tload(t, x)
        isa.tstore(y, t)

    x = np.ones((16, 64), np.float32)
    y = np.zeros_like(x)
    sized(x, y)
    assert (y == 1).all()
