"""Loops over blocks: one around the region that is a whole kernel, and one that several threads
run, which takes blocks from a shared counter."""

from __future__ import annotations

from pto.isa.rules.simt import SLOTS
from pto.run.jit.llvm.text import I64, Text
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
    head, body, done = x.fresh("head"), x.fresh("body"), x.fresh("done")
    x.jump(head)
    x.label(head)
    place, block = len(x.lines), x.name()
    x.branch(x.compare("slt", block, "%end"), body, done)
    x.label(body)
    x.store(I64, block, x.at("%ctx", 8 * BLOCK), 8)
    for index, what in ((due, LOOK), (x.at("%ctx", 8 * DIRTY), CLEAR)):
        rest, go = x.fresh("rest"), x.fresh("go")
        flag = x.load_flag(index)
        x.branch(x.compare("ne", flag, 0), rest, go, ", !prof !1")
        x.label(rest)
        x.branch(ask(what), go, done)
        x.label(go)
    for memory, first, end in needs.cleared:
        start = x.at(bases[memory], first)
        x.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {end - first}, i1 false)")
    for start in sorted(needs.flags):
        row = x.at(word(FLAGS), start)
        x.do(f"call void @llvm.memset.p0.i64(ptr {row}, i8 0, i64 {4 * EVENT_IDS}, i1 false)")
    if REGISTERS in needs.words:
        to, source = word(REGISTERS), word(FIRST)
        given = f"ptr {to}, ptr {source}, i64 {REGISTER_BYTES}, i1 false"
        x.do(f"call void @llvm.memcpy.p0.p0.i64({given})")
    if KEPT in needs.words:
        given = f"ptr {word(KEPT)}, i8 0, i64 {8 * SLOTS}, i1 false"
        x.do(f"call void @llvm.memset.p0.i64({given})")
    status = x.new(f"call i32 @{region}(ptr %ctx, ptr %frame)")
    fine = x.fresh("fine")
    x.branch(x.compare("eq", status, 0, "i32"), fine, done)
    x.label(fine)
    if logs:
        nth = x.mul(x.sub(block, "%first"), 8)
        x.store(I64, x.load(I64, log, 8), x.at("%where", nth), 8)
    following = x.new(f"add i64 {block}, 1")
    x.lines.insert(place, f"  {block} = phi i64 [ %first, %entry ], [ {following}, %{x.here} ]")
    x.jump(head)
    x.label(done)
    x.do(f"ret i64 {block}")
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
