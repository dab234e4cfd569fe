"""A function that waits for other agents, as a coroutine of LLVM: it stops and is resumed there.

What it needs afterwards lies in memory that the caller gives; LLVM finds out what that is. A word
of the context tells how it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pto.run.jit.border.context import (
    AT,
    BROKEN,
    CALL,
    DONE,
    DUE,
    EXPLAINS,
    LOOK,
    PASSED,
    ROOMY,
    RUNS,
    STATUS,
)
from pto.run.jit.llvm.text import I64, Text

if TYPE_CHECKING:
    from pto.run.jit.emit.table import Spot

RESUME, TURNS = "resume", "turns"
_DECLARED = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare ptr @llvm.coro.begin(token, ptr)
declare i64 @llvm.coro.size.i64()
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare void @llvm.coro.resume(ptr)
"""
# the memory is as large as the caller says; where that is too small nothing is done
_BEGIN = f"""
  %coro.id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)
  %coro.size = call i64 @llvm.coro.size.i64()
  %coro.told = getelementptr i8, ptr %ctx, i64 {8 * ROOMY}
  store i64 %coro.size, ptr %coro.told, align 8
  %coro.fits = icmp ule i64 %coro.size, %capacity
  br i1 %coro.fits, label %coro.go, label %coro.small
coro.small:
  ret ptr null
coro.go:
  %coro.handle = call ptr @llvm.coro.begin(token %coro.id, ptr %room)
  br label %body
body:"""


def suspend_unless(x: Text, met: str, again: str) -> None:
    """Others go on until a wait is met; it is looked at from `again` on."""
    rest, go = x.fresh("rest"), x.fresh("go")
    x.branch(met, go, rest)
    x.label(rest)
    how = x.new("call i8 @llvm.coro.suspend(token none, i1 false)")
    x.do(f"switch i8 {how}, label %gone [ i8 0, label %{again} i8 1, label %gone ]")
    x.label(go)
    passed(x)


def nap(x: Text, site: int, ask: str, again: str) -> None:
    """Wait without a word: only who asks why goes on to `ask`."""
    rest = x.fresh("rest")
    x.store(I64, site, x.at("%ctx", 8 * AT), 8)
    asked = x.load(I64, x.at("%ctx", 8 * EXPLAINS), 8)
    x.branch(x.compare("ne", asked, 0), ask, rest)
    x.label(rest)
    how = x.new("call i8 @llvm.coro.suspend(token none, i1 false)")
    x.do(f"switch i8 {how}, label %gone [ i8 0, label %{again} i8 1, label %gone ]")


def until(
    s: Spot,
    met: Callable[[], str],
    take: Callable[[], None] | None = None,
    *,
    known: str = "true",
    naps: bool = True,
) -> None:
    """Others go on until `met` holds, which is looked at anew each time; then `take` is done. What
    is not `known` Python does; without `naps` it is asked each time whether a wait is met."""
    x, again = s.x, s.x.fresh("again")
    look, yes, stuck, slow, done = map(x.fresh, ("look", "yes", "stuck", "slow", "done"))
    x.jump(again)
    x.label(again)
    x.branch(known, look, slow)
    x.label(look)
    x.branch(met(), yes, stuck)
    x.label(stuck)
    if naps:
        nap(x, s.e.unit.site(s.op), slow, again)
    else:
        x.jump(slow)
    x.label(slow)
    s.e.run_outside(s.op, again=again)
    x.jump(done)
    x.label(yes)
    if take is not None:
        take()
    passed(x)
    x.jump(done)
    x.label(done)


def passed(x: Text) -> None:
    """A wait is met: whoever looks for a deadlock sees that something has moved."""
    place = x.at("%ctx", 8 * PASSED)
    x.store(I64, x.new(f"add i64 {x.load(I64, place, 8)}, 1"), place, 8)


def finish(x: Text, name: str, declare: Callable[[str], None], without: str) -> str:
    """The text of the whole function: ptr f(context, frame, room, capacity)."""
    for line in _DECLARED.split("\n"):
        declare(line)
    status = x.at("%ctx", 8 * STATUS)
    x.store(I64, DONE, status, 8)
    x.jump("end")
    x.label("failed")
    x.store(I64, BROKEN, x.at("%ctx", 8 * STATUS), 8)
    x.jump("end")
    x.label("end")
    how = x.new("call i8 @llvm.coro.suspend(token none, i1 true)")
    x.do(f"switch i8 {how}, label %gone [ i8 0, label %never i8 1, label %gone ]")
    x.label("never")
    x.do("unreachable")
    x.label("gone")
    x.do("call void @llvm.coro.end(ptr %coro.handle, i1 false, token none)")
    x.do("ret ptr %coro.handle")
    head = f"define ptr @{name}(ptr %ctx, ptr %frame, ptr %room, i64 %capacity) presplitcoroutine"
    rooms = [line for line in x.allocas if " = alloca " in line]  # these come first of all
    others = [line for line in x.allocas if " = alloca " not in line]
    x.allocas = [*rooms, _BEGIN, *others]
    return x.function(head, without).replace("%entry ]", "%body ]")


def resume() -> str:
    """i32 f(handle, _)."""
    return (
        f"define i32 @{RESUME}(ptr %handle, ptr %none) {{\n"
        "  call void @llvm.coro.resume(ptr %handle)\n  ret i32 0\n}"
    )


def turns() -> str:
    """i32 f(handles, contexts, count): agents go on in turns until one fails, or none can."""
    x = Text()

    def word(context: str, index: int) -> str:
        return x.load(I64, x.at(context, 8 * index), 8)

    moved, left, place = x.stack(I64), x.stack(I64), x.stack(I64)
    whole, one, off, on, end = (x.fresh(w) for w in ("round", "one", "off", "on", "end"))
    x.jump(whole)
    x.label(whole)
    for cell in (moved, left, place):
        x.store(I64, 0, cell, 8)
    first = x.load("ptr", "%p1", 8)
    look, go = x.fresh("look"), x.fresh("go")
    due = x.load("ptr", x.at(first, 8 * DUE), 8)
    flag = x.new(f"load volatile i64, ptr {due}, align 8")
    x.branch(x.compare("ne", flag, 0), look, go)
    x.label(look)
    call = x.load("ptr", x.at(first, 8 * CALL), 8)
    status = x.new(f"call i32 {call}(ptr {first}, i32 {LOOK})")
    bad = x.fresh("bad")
    x.branch(x.compare("eq", status, 0, "i32"), go, bad)
    x.label(bad)
    x.store(I64, BROKEN, x.at(first, 8 * STATUS), 8)
    x.do("ret i32 0")
    x.label(go)
    x.jump(one)
    x.label(one)
    i = x.load(I64, place, 8)
    context = x.load("ptr", x.at("%p1", x.mul(i, 8)), 8)
    x.branch(x.compare("eq", word(context, STATUS), RUNS), on, off)
    x.label(on)
    before = word(context, PASSED)
    x.do(f"call void @llvm.coro.resume(ptr {x.load('ptr', x.at('%p0', x.mul(i, 8)), 8)})")
    now = word(context, STATUS)
    broken, fine = x.fresh("broken"), x.fresh("fine")
    x.branch(x.compare("eq", now, BROKEN), broken, fine)
    x.label(broken)
    x.do("ret i32 0")
    x.label(fine)
    runs = x.compare("eq", now, RUNS)
    same = x.both(runs, x.compare("eq", before, word(context, PASSED)))
    for cell, yes in ((left, runs), (moved, x.negated(same))):
        more = x.new(f"zext i1 {yes} to i64")
        x.store(I64, x.new(f"or i64 {x.load(I64, cell, 8)}, {more}"), cell, 8)
    x.jump(off)
    x.label(off)
    following = x.add(x.load(I64, place, 8), 1)
    x.store(I64, following, place, 8)
    x.branch(x.compare("slt", following, "%p2"), one, end)
    x.label(end)
    both = x.new(f"and i64 {x.load(I64, moved, 8)}, {x.load(I64, left, 8)}")
    stop = x.fresh("stop")
    x.branch(x.compare("ne", both, 0), whole, stop)
    x.label(stop)
    x.do("ret i32 0")
    return x.function(f"define i32 @{TURNS}(ptr %p0, ptr %p1, i64 %p2)")
