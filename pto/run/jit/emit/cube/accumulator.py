"""Elements on their way out of an accumulator, in compiled code: relu and one rounding.

Scales (a word for all, or one a column) are the reference's.
"""

from __future__ import annotations

from collections.abc import Callable

from pto.core.dtypes import DType
from pto.isa.meaning.cube.accumulator import Outlet
from pto.isa.meaning.memory import registers
from pto.run.jit.border import context
from pto.run.jit.border.state import register_offset
from pto.run.jit.emit.table import Spot
from pto.run.jit.emit.tile.copies import Work


def with_outlet(s: Spot, src: DType, dst: DType, then: Callable[[Work | None, str], None]) -> None:
    """Calls `then` with the work on each element, once for each thing CTRL may ask for."""
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
    place = x.at(s.e.word(context.REGISTERS), register_offset(registers.CTRL))
    bit = x.new(f"and i64 {x.load('i64', place, 8)}, {1 << registers.KEEP_SPECIALS}")
    x.when(x.compare("ne", bit, 0), lambda: then(*work(False)), lambda: then(*work(True)))
