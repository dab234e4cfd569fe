"""Cooperative scheduling of the agents of a core in compiled code, from block to block."""

from __future__ import annotations

from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.runtime.context import BROKEN, DONE, POLL, RUNS, Word

RESUME, BLOCKS = "resume", "blocks"
_TURNS = "turns"
# of the table of agents: handles, contexts, and what each of them begins with
HANDLES, CONTEXTS, BEGINS, FRAMES, ROOMS, SIZES = range(6)


def resume() -> str:
    """i32 f(handle, _)."""
    return (
        f"define i32 @{RESUME}(ptr %handle, ptr %none) {{\n"
        "  call void @llvm.coro.resume(ptr %handle)\n  ret i32 0\n}"
    )


def _turns() -> str:
    """i32 f(handles, contexts, count): resumes agents in turn until one fails, or none can
    continue."""
    x = Text()

    def word(context: str, index: int) -> str:
        return x.load(I64, x.at(context, 8 * index), 8)

    moved, left = x.stack(I64), x.stack(I64)
    again, stop = x.fresh("round"), x.fresh("stop")
    x.jump(again)
    x.label(again)
    for cell in (moved, left):
        x.store(I64, 0, cell, 8)
    first = x.load("ptr", "%p1", 8)

    def look() -> None:
        call = x.load("ptr", x.at(first, Word.CALL.offset), 8)
        status = x.new(f"call i32 {call}(ptr {first}, i32 {POLL})")
        x.leave_unless(x.compare("eq", status, 0, "i32"), broken)

    def broken() -> None:
        x.store(I64, BROKEN, x.at(first, Word.STATUS.offset), 8)
        x.do("ret i32 0")

    def agent(i: str) -> None:
        context = x.load("ptr", x.at("%p1", x.mul(i, 8)), 8)

        def resume() -> None:
            before = word(context, Word.PASSED)
            x.do(f"call void @llvm.coro.resume(ptr {x.load('ptr', x.at('%p0', x.mul(i, 8)), 8)})")
            now = word(context, Word.STATUS)
            x.leave_unless(x.compare("ne", now, BROKEN), lambda: x.do("ret i32 0"))
            runs = x.compare("eq", now, RUNS)
            same = runs & x.compare("eq", before, word(context, Word.PASSED))
            for cell, yes in ((left, runs), (moved, ~same)):
                more = x.new(f"zext i1 {yes} to i64")
                x.store(I64, x.new(f"or i64 {x.load(I64, cell, 8)}, {more}"), cell, 8)

        x.when(x.compare("eq", word(context, Word.STATUS), RUNS), resume)

    due = x.load_flag(x.load("ptr", x.at(first, Word.POLL_FLAG.offset), 8))
    x.when(x.compare("ne", due, 0), look)
    x.loop("%p2", 1, agent)
    both = x.new(f"and i64 {x.load(I64, moved, 8)}, {x.load(I64, left, 8)}")
    x.branch(x.compare("ne", both, 0), again, stop)
    x.label(stop)
    x.do("ret i32 0")
    return x.function(f"define internal i32 @{_TURNS}(ptr %p0, ptr %p1, i64 %p2)")


def blocks() -> str:
    """i64 f(agents, count, news, many, block, end): runs the agents, and the next block when all
    are done. Returns the current block.

    `news` are memory ranges to reset for each block: address, source of the copy (null: zeros), and
    bytes. A block in which Python ran is the last one.
    """
    x = Text()

    def cell(word: int, n: str) -> str:
        return x.at("%p0", x.mul(x.add(x.mul("%p1", word), n), 8))

    def given(word: int, n: str) -> str:
        return x.load("ptr", cell(word, n), 8)

    now, following = x.stack(I64), x.name()
    head = x.fresh("head")
    leave = x.fresh("leave")
    on = x.fresh("on")

    def is_over(n: str) -> None:
        context = given(CONTEXTS, n)
        done = x.compare("eq", x.load(I64, x.at(context, Word.STATUS.offset), 8), DONE)
        clean = x.compare("eq", x.load(I64, x.at(context, Word.DIRTY.offset), 8), 0)
        x.leave_unless(done & clean, lambda: x.jump(leave))

    def renew(n: str) -> None:
        row = x.at("%p2", x.mul(n, 24))
        to, source = x.load("ptr", row, 8), x.load("ptr", x.at(row, 8), 8)
        size = x.load(I64, x.at(row, 16), 8)
        x.when(
            x.compare("eq", source, "null", "ptr"),
            lambda: x.do(f"call void @llvm.memset.p0.i64(ptr {to}, i8 0, i64 {size}, i1 false)"),
            lambda: x.do(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)"
            ),
        )

    def turn_to(n: str) -> None:
        context = given(CONTEXTS, n)
        for word, value in ((Word.BLOCK, following), (Word.STATUS, RUNS), (Word.AT, 0)):
            x.store(I64, value, x.at(context, 8 * word), 8)

    def begin(n: str) -> None:
        context = given(CONTEXTS, n)
        words = f"ptr {context}, ptr {given(FRAMES, n)}, ptr {given(ROOMS, n)}"
        size = x.load(I64, cell(SIZES, n), 8)
        handle = x.new(f"call ptr {given(BEGINS, n)}({words}, i64 {size})")
        x.store("ptr", handle, cell(HANDLES, n), 8)
        status = x.load(I64, x.at(context, Word.STATUS.offset), 8)
        x.leave_unless(x.compare("ne", status, BROKEN), lambda: x.jump(leave))

    x.store(I64, "%p4", now, 8)
    x.jump(head)
    x.label(head)
    x.do(f"call i32 @{_TURNS}(ptr %p0, ptr {cell(CONTEXTS, '0')}, i64 %p1)")
    x.loop("%p1", 1, is_over)
    x.do(f"{following} = add i64 {x.load(I64, now, 8)}, 1")
    x.branch(x.compare("slt", following, "%p5"), on, leave)
    x.label(on)
    x.store(I64, following, now, 8)
    x.loop("%p3", 1, renew)
    x.loop("%p1", 1, turn_to)
    x.loop("%p1", 1, begin)
    x.jump(head)
    x.label(leave)
    x.do(f"ret i64 {x.load(I64, now, 8)}")
    words = "ptr %p0, i64 %p1, ptr %p2, i64 %p3, i64 %p4, i64 %p5"
    return f"{_turns()}\n{x.function(f'define i64 @{BLOCKS}({words})')}"
