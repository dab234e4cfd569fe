"""The log of accesses to global memory, which the slice of a region writes before any block
runs."""

from __future__ import annotations

from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.runtime.context import HEAD, TOUCH


def log_access(name: str) -> str:
    """void f(log, words...): counts every access, and stores those that fit."""
    x = Text()
    count, room = x.load(I64, "%p0", 8), x.load(I64, x.at("%p0", 8), 8)
    x.store(I64, x.new(f"add i64 {count}, 1"), "%p0", 8)

    def keep() -> None:
        place = x.at("%p0", x.add(x.mul(count, 8 * TOUCH), 8 * HEAD))
        for n in range(TOUCH):
            x.store(I64, f"%p{n + 1}", x.at(place, 8 * n), 8)

    x.when(x.new(f"icmp ult i64 {count}, {room}"), keep)
    x.do("ret void")
    words = ", ".join(f"i64 %p{n + 1}" for n in range(TOUCH))
    return x.function(f"define internal void {name}(ptr %p0, {words}) nounwind")
