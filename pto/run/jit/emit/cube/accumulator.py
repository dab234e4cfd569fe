"""Conversion of accumulator elements that are stored: relu and one rounding. The reference engine
handles scales."""

from __future__ import annotations

from collections.abc import Callable

from pto.core.dtypes import DType
from pto.isa.meaning.cube.accumulator import Outlet
from pto.isa.meaning.memory import registers
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile.copies import Work


def with_outlet(
    s: OpContext, src: DType, dst: DType, then: Callable[[Work | None, str], None]
) -> None:
    """Call `then` with the function applied to each element, once for each mode that CTRL may
    select."""
    relu = s.case.word("reluPreMode")
    outlet, x = Outlet(src, dst, relu, s.case.profile.scaling), s.x
    if src is dst and outlet.relu == "no_relu":
        then(None, "")
        return

    def work(saturate: bool) -> tuple[Work, str]:
        key = f"outlet {src} {dst} {outlet.relu} {saturate}"
        return Work(lambda values: outlet.cast(values, saturate)), key

    if src is dst or not dst.is_float:
        then(*work(True))
        return
    kept = x.compare("ne", s.control(1 << registers.KEEP_SPECIALS), 0)
    x.when(kept, lambda: then(*work(False)), lambda: then(*work(True)))
