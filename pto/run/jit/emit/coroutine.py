"""A function that waits for other agents, as a coroutine of LLVM: it stops and is resumed there.

What it needs afterwards lies in memory that the caller gives; LLVM finds out what that is. A word
of the context tells how it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pto.run.jit.border.context import AT, BROKEN, DONE, EXPLAINS, PASSED, ROOMY, STATUS
from pto.run.jit.llvm.text import I64, Text

if TYPE_CHECKING:
    from pto.run.jit.emit.table import Spot

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
    s.e.run_outside(s.op, "only the host knows whether all have come", again=again)
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


def finish(x: Text, name: str, declare: Callable[[str], None], notes: bool) -> str:
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
    return x.function(head, notes=notes).replace("%entry ]", "%body ]")
