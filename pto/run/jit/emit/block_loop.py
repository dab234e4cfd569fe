"""Loops over blocks: one around the region that is a whole kernel, and one that several threads
run, which takes blocks from a shared counter."""

from __future__ import annotations

from pto.isa.rules.simt import SLOTS
from pto.run.jit.llvm.text import I64, Text, Val
from pto.run.jit.runtime.context import (
    BLOCK,
    CALL,
    CLEAR,
    DIRTY,
    DUE,
    FIRST,
    FLAGS,
    KEPT,
    LOG,
    LOOK,
    REGISTERS,
    TABLE,
    Needs,
)
from pto.run.jit.runtime.state import EVENT_IDS, REGISTER_BYTES


def rounds(name: str, region: str, needs: Needs, *, logs: bool = False) -> str:
    """i64 f(context, frame, first, end, where): runs blocks; returns the block that failed, or
    `end`. With `logs`, the number of logged accesses is stored at `where` after each block."""
    x = Text()

    def word(index: int) -> str:
        return x.load("ptr", x.at("%ctx", 8 * index), 8)

    def ask(what: int) -> str:
        status = x.new(f"call i32 {call}(ptr %ctx, i32 {what})")
        return x.compare("eq", status, 0, "i32")

    call, due, log = word(CALL), word(DUE), word(LOG)
    bases = {
        memory: x.load("ptr", x.at(word(TABLE), 16 * memory), 8) for memory, _, _ in needs.cleared
    }

    def zero(start: str, nbytes: int) -> None:
        x.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {nbytes}, i1 false)")

    def run(state: list[str]) -> list[Val]:
        (block,) = state

        def fail() -> None:
            x.do(f"ret i64 {block}")

        x.store(I64, block, x.at("%ctx", 8 * BLOCK), 8)
        for index, what in ((due, LOOK), (x.at("%ctx", 8 * DIRTY), CLEAR)):
            rest, go = x.fresh("rest"), x.fresh("go")
            x.branch(x.compare("ne", x.load_flag(index), 0), rest, go, ", !prof !1")
            x.label(rest)
            x.leave_unless(ask(what), fail)
            x.jump(go)
            x.label(go)
        for memory, first, end in needs.cleared:
            zero(x.at(bases[memory], first), end - first)
        for start in sorted(needs.flags):
            zero(x.at(word(FLAGS), start), 4 * EVENT_IDS)
        if REGISTERS in needs.words:
            given = f"ptr {word(REGISTERS)}, ptr {word(FIRST)}, i64 {REGISTER_BYTES}, i1 false"
            x.do(f"call void @llvm.memcpy.p0.p0.i64({given})")
        if KEPT in needs.words:
            zero(word(KEPT), 8 * SLOTS)
        status = x.new(f"call i32 @{region}(ptr %ctx, ptr %frame)")
        x.leave_unless(x.compare("eq", status, 0, "i32"), fail)
        if logs:
            nth = x.mul(x.sub(block, "%first"), 8)
            x.store(I64, x.load(I64, log, 8), x.at("%where", nth), 8)
        return [x.add(block, 1)]

    def more(state: list[str]) -> str:
        return x.compare("slt", state[0], "%end")

    (last,) = x.while_loop([I64], ["%first"], more, run)
    x.do(f"ret i64 {last}")
    return x.function(f"define i64 @{name}(ptr %ctx, ptr %frame, i64 %first, i64 %end, ptr %where)")


def taken(name: str, rounds: str) -> str:
    """i64 f(context, frame, chunk, end, where): takes chunks of blocks from the counter at `where`,
    which threads share, and runs them. Returns the block that failed, or `end`. After a failure the
    counter is at its end."""
    x = Text()
    head, body, done, bad = (x.fresh(word) for word in ("head", "body", "done", "bad"))
    x.jump(head)
    x.label(head)
    first = x.new("atomicrmw add ptr %where, i64 %chunk monotonic, align 8")
    x.branch(x.compare("slt", first, "%end"), body, done)
    x.label(body)
    last = x.new(f"call i64 @llvm.smin.i64(i64 {x.add(first, '%chunk')}, i64 %end)")
    given = f"ptr %ctx, ptr %frame, i64 {first}, i64 {last}, ptr null"
    stopped = x.new(f"call i64 @{rounds}({given})")
    x.branch(x.compare("slt", stopped, last), bad, head)
    x.label(bad)
    x.do("store atomic i64 %end, ptr %where monotonic, align 8")
    x.do(f"ret i64 {stopped}")
    x.label(done)
    x.do("ret i64 %end")
    return x.function(f"define i64 @{name}(ptr %ctx, ptr %frame, i64 %chunk, i64 %end, ptr %where)")
