"""Specialisation, arguments, programs as text, and what is generated from the rows."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto import isa
from pto.ir.copied import same
from pto.ir.text.parser import parse
from pto.lang import stubs
from pto.lang.call.signature import instructions, parameters
from pto.verify import judge


@pto.kernel
def double(x: pto.Global, y: pto.Global, factor: float = 2.0) -> None:
    t = pto.tile(16, 64, x.dtype)
    isa.tload(t, x)
    isa.tmuls(t, t, factor)
    isa.tstore(y, t)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.int32])
def test_any_element_type_specialises(kind: Any):
    x = np.arange(8 * 64).reshape(8, 64).astype(kind)
    y = np.zeros_like(x)
    double(x, y, 2)
    assert np.array_equal(y.astype(np.float64), 2 * x.astype(np.float64))


def test_same_shapes_are_traced_once():
    calls: list[int] = []

    @pto.kernel
    def counted(x: pto.Global[pto.f32], n: int) -> None:
        calls.append(n)
        t = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        isa.tadds(t, t, float(n))
        isa.tstore(x, t)

    x = np.zeros(64, np.float32)
    for n in (1, 1, 2, 1):
        counted(x, n)
    counted(np.zeros(32, np.float32), 1)
    assert calls == [1, 2, 1]
    assert (x == 5).all()


def test_strided_arrays_come_back_changed():
    base = np.zeros((8, 128), np.float32)
    x = np.ones((8, 64), np.float32)
    double(x, base[:, ::2], 3.0)
    assert (base[:, ::2] == 3).all()
    assert (base[:, 1::2] == 0).all()


class Lent:
    """Something that is no NumPy array and lends its memory."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.dtype = array.dtype

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_dlpack_is_used_in_place():
    x, y = np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32)
    double(Lent(x), Lent(y))
    assert (y == 2).all()


def test_text_is_the_program():
    x = np.ones((8, 64), np.float32)
    made = double.module(x, x, 2.0)
    again = parse(double.ir)
    assert same(made.op, again.op)
    target, findings = judge(again)
    assert target.profile.name == "a5"
    assert findings == []


def test_check_of_another_profile_needs_no_run():
    x = np.ones((8, 64), ml_dtypes.bfloat16)
    assert double.check("a5", x, x, 2.0) == []
    assert {d.code for d in double.check("a2a3", x, x, 2.0)} == {"PTO-X011"}


def test_manual_mode_places_tiles():
    @pto.kernel
    def placed(x: pto.Global[pto.f32]) -> None:
        a = pto.tile(1, 64, pto.f32)
        pto.assign(a, 0x1000)
        b = pto.tile(1, 64, pto.f32, address=0x2000)
        isa.tload(a, x)
        isa.set_flag("MTE2", "V", 0)
        isa.wait_flag("MTE2", "V", 0)
        isa.tadds(b, a, 1.0)
        isa.set_flag("V", "MTE3", 0)
        isa.wait_flag("V", "MTE3", 0)
        isa.tstore(x, b)

    x = np.zeros(64, np.float32)
    placed(x)
    assert (x == 1).all()
    assert "addr = %c4096" in placed.ir
    assert "addr = %c8192" in placed.ir


@pytest.mark.parametrize(("role", "core"), [("vec", "vector"), ("mat", "cube")])
def test_a_kernel_with_flags_states_its_core(role: str, core: str):
    def loads(x: pto.Global[pto.f16], ordered: bool) -> None:
        for n in range(2):
            t = pto.tile(16, 16, pto.f16, role=role, address=512 * n)
            isa.tload(t, x)
        if ordered:
            isa.barrier("MTE2")

    x = np.zeros((16, 16), np.float16)
    for ordered in (True, False):  # a compiler that orders the pipes finds the core itself
        kernel = pto.kernel(loads, profile="a2a3")
        kernel.module(x, ordered=ordered)
        assert (f"pto.kernel_kind = #pto.kernel_kind<{core}>" in kernel.ir) is ordered


def test_sections_run_on_their_side():
    @pto.kernel
    def sides(x: pto.Global[pto.i32], y: pto.Global[pto.i32]) -> None:
        with pto.section_cube():
            isa.store_scalar(x, 0, pto.scalar(7, pto.i32))
        with pto.section_vector():
            isa.store_scalar(y, pto.subblock_idx(), pto.scalar(9, pto.i32))

    x, y = np.zeros(2, np.int32), np.zeros(2, np.int32)
    sides(x, y)
    assert x.tolist() == [7, 0]
    assert y.tolist() == [9, 9]


# ---- generated from the rows


def test_stubs_are_up_to_date():
    for path, text in stubs.files().items():
        assert path.read_text(encoding="utf-8") == text, "run python -m pto.lang.stubs"


def test_every_instruction_is_a_function_with_a_docstring():
    for name, row in instructions().items():
        function = getattr(isa, name)
        assert function.__name__ == name
        assert row.meaning in function.__doc__
        required = [p.required for p in parameters(row) if not p.keyword_only]
        assert required == sorted(required, reverse=True), name


def test_tile_instructions_take_the_destination_first():
    names = {n: [p.name for p in parameters(r) if p.required] for n, r in instructions().items()}
    assert names["tadd"] == ["dst", "src0", "src1"]
    assert names["tload"] == ["dst", "src"]
    assert names["tstore"] == ["dst", "src"]
    assert names["tmatmul_acc"] == ["dst", "acc_in", "lhs", "rhs"]
    assert names["vadd"] == ["lhs", "rhs"]
    assert names["set_flag"] == ["src_pipe", "dst_pipe", "event_id"]


def test_unknown_name_suggests_a_known_one():
    with pytest.raises(AttributeError, match="`tadd`"):
        isa.tad  # noqa: B018


def test_importing_the_package_loads_nothing():
    code = "import pto, sys; print(*(m for m in sys.modules if m[:3] in ('pto', 'num')))"
    root = Path(pto.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    loaded = {"pto", "pto.isa", "pto.lang", "pto.lang.names"}
    assert {m for m in done.stdout.split() if m != "numbers"} == loaded


SCALE = 2.0
SETTINGS = {"scale": 2.0}


def _scaled(t: Any) -> None:
    isa.tmuls(t, t, SCALE)


def _kernel_of(multiply: Any) -> pto.Kernel:
    def scale(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.tile(16, 64, pto.f32)
        isa.tload(t, x)
        multiply(t)
        isa.tstore(y, t)

    return pto.kernel(scale)


def test_what_a_kernel_sees_besides_its_arguments_is_part_of_its_program(monkeypatch: Any):
    factor, space = 2.0, SimpleNamespace(scale=2.0)
    kernels = [
        _kernel_of(_scaled),
        _kernel_of(lambda t: isa.tmuls(t, t, SCALE)),
        _kernel_of(lambda t: isa.tmuls(t, t, SETTINGS["scale"])),
        _kernel_of(lambda t: isa.tmuls(t, t, factor)),
        _kernel_of(lambda t: isa.tmuls(t, t, space.scale)),
    ]

    def results() -> list[float]:
        x, found = np.ones((16, 64), np.float32), []
        for kernel in kernels:
            y = np.zeros_like(x)
            kernel(x, y)
            found.append(float(y[0, 0]))
        return found

    assert results() == [2.0] * 5
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5.0)
    monkeypatch.setitem(SETTINGS, "scale", 5.0)
    factor, space.scale = 5.0, 5.0
    assert results() == [5.0] * 5
    assert [len(k._cache) for k in kernels] == [2] * 5


def test_warnings_of_a_check_are_shown_at_a_launch():
    @pto.kernel
    def overlapping(x: pto.Global[pto.f32]) -> None:
        a = pto.tile(16, 64, pto.f32, address=0)
        b = pto.tile(16, 64, pto.f32, address=0x100)
        isa.tload(a, x)
        isa.tload(b, x)
        isa.tadd(a, a, b)

    with pytest.warns(pto.PtoWarning, match="PTO-M106") as caught:
        overlapping(np.zeros((16, 64), np.float32), coverage=False)
    assert caught[0].filename == __file__


def test_a_watched_run_says_what_it_looked_at():
    @pto.kernel
    def copy(x: pto.Global[pto.f32], y: pto.Global[pto.f32], address: Any = None) -> None:
        t = pto.tile(16, 64, pto.f32, address=address)
        i = pto.block_idx() * 16
        isa.tload(t, x[i:, :])
        isa.tstore(y[i:, :], t)

    x = np.zeros((64, 64), np.float32)
    assert "1 block watched, the program uses its block number" in str(copy.sanitize(x, x.copy()))
    shown = str(copy[4].sanitize(x, x.copy()))
    assert shown.startswith("no findings; ")
    assert "order between pipes is not checked; 4 blocks watched" in shown
    placed = copy[4].sanitize(x, x.copy(), 0)
    assert [d.code for d in placed] == ["PTO-R037"]
    assert copy[4].sanitize(x, x.copy(), 0, automatic=True).is_clean


_STEP = 2.0


def _stepped(t: pto.Tile) -> pto.Tile:
    return t + _STEP


def test_what_a_kernel_sees_may_change_between_calls_and_back() -> None:
    """Numbers of a module, cells and helpers, which are compared by identity where they can be."""
    own = 1.0

    @pto.kernel
    def add(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, _stepped(pto.load(x, 8, 8)) * own)

    x, y = np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)

    def found() -> float:
        add(x, y)
        return float(y[0, 0])

    space = globals()
    helper = _stepped
    assert [found(), found()] == [3, 3]
    try:
        space["_STEP"] = 4.0
        assert found() == 5
        own = 10.0
        assert found() == 50
        space["_stepped"] = lambda t: t
        assert found() == 10
        space["_stepped"], space["_STEP"] = helper, 2.0
        assert found() == 30
        own = 1.0
        assert [found(), found()] == [3, 3]
    finally:
        space["_stepped"], space["_STEP"] = helper, 2.0


def test_attributes_of_what_a_kernel_sees_may_change_between_calls() -> None:
    class Kind:
        size, inner, area = 1.0, SimpleNamespace(size=1.0), 1.0

    module: Any = ModuleType("settings")
    module.size, space = 1.0, Kind()
    space.size, space.inner = 1.0, SimpleNamespace(size=1.0)
    pair, many = (SimpleNamespace(size=1.0), 2.0), SimpleNamespace(sizes=[1.0])

    @pto.kernel
    def scale(y: pto.Global[pto.f32]) -> None:
        found = module.size * space.size * space.inner.size * Kind.size * pair[0].size
        found *= many.sizes[0] * math.sqrt(space.area)
        pto.store(y, pto.full(8, 8, found, pto.f32))

    def product() -> float:
        y = np.zeros((8, 8), np.float32)
        scale(y)
        return float(y[0, 0])

    space.area = 1.0
    assert [product(), product()] == [1, 1]
    for n, holder in enumerate((module, space, space.inner, Kind, pair[0]), 1):
        holder.size = 2.0
        assert [product(), product()] == [2.0**n] * 2
    space.inner = SimpleNamespace(size=4.0)
    assert product() == 64
    space.__dict__ = {**vars(space), "size": 1.0}
    assert product() == 32
    space.area = 4.0
    assert product() == 64
    many.sizes[0] = 0.5
    assert [product(), product()] == [32, 32]


def test_constants_that_are_equal_and_not_the_same() -> None:
    @pto.kernel
    def quotient(y: pto.Global[pto.f32], pair: Any) -> None:
        number = pair[0] if isinstance(pair, tuple) else pair
        shown = 1.0 if isinstance(number, int) else math.copysign(2.0, number)
        pto.store(y, pto.full(8, 8, shown, pto.f32))

    def found(pair: Any) -> float:
        y = np.zeros((8, 8), np.float32)
        quotient(y, pair)
        return float(y[0, 0])

    for _ in range(2):
        assert [found(0), found(0.0), found(-0.0)] == [1, 2, -2]
        assert [found((0,)), found((0.0,)), found((-0.0,))] == [1, 2, -2]
        assert [found(np.float32(0.0)), found(np.float32(-0.0))] == [2, -2]


def test_a_kernel_with_its_grid_runs_by_name_too():
    @pto.kernel(profile="a5")
    def twice(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        i = pto.block_idx() * 16
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64) * 2.0)

    x = np.arange(37 * 64, dtype=np.float32).reshape(37, 64)
    y = np.zeros_like(x)
    report = twice[3].run(x, y, engine="reference")
    assert np.array_equal(y, x * 2)
    assert "engine reference, 3 blocks" in str(report)
