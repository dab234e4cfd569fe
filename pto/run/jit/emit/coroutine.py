"""Functions that wait for other agents, as LLVM coroutines: they suspend, and are resumed later.

The caller provides the memory of the coroutine frame; LLVM decides its contents. A word of the
context is the status.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.llvm.value import Condition, Val
from pto.run.jit.runtime.context import BROKEN, DONE, Word

if TYPE_CHECKING:
    from pto.run.jit.emit.operation import OpContext

BODY: Final = "body"  # the label after the frame is set up
_DECLARED = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare ptr @llvm.coro.begin(token, ptr)
declare i64 @llvm.coro.size.i64()
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare void @llvm.coro.resume(ptr)
"""
# if the memory of the caller is too small, nothing runs
_BEGIN = f"""
  %coro.id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)
  %coro.size = call i64 @llvm.coro.size.i64()
  %coro.told = getelementptr i8, ptr %ctx, i64 {Word.FRAME_BYTES.offset}
  store i64 %coro.size, ptr %coro.told, align 8
  %coro.fits = icmp ule i64 %coro.size, %capacity
  br i1 %coro.fits, label %coro.go, label %coro.small
coro.small:
  ret ptr null
coro.go:
  %coro.handle = call ptr @llvm.coro.begin(token %coro.id, ptr %room)
  br label %{BODY}"""


def suspend_unless(x: Text, met: Condition, again: str) -> None:
    """Suspend unless a wait is over; it is tested again from `again` on."""
    rest, go = x.fresh("rest"), x.fresh("go")
    x.branch(met, go, rest)
    x.label(rest)
    _suspend(x, again)
    x.label(go)
    passed(x)


def _suspend(x: Text, again: str) -> None:
    """Stop here; a resumed coroutine continues at `again`."""
    how = x.new("call i8 @llvm.coro.suspend(token none, i1 false)")
    x.do(f"switch i8 {how}, label %gone [ i8 0, label %{again} i8 1, label %gone ]")


def nap(x: Text, site: int, ask: str, again: str) -> None:
    """Suspend at a wait site; Python computes the reason (`ask`) only on request."""
    rest = x.fresh("rest")
    x.store(I64, site, x.at("%ctx", Word.AT.offset), 8)
    asked = x.load(I64, x.at("%ctx", Word.EXPLAINS.offset), 8)
    x.branch(x.compare("ne", asked, 0), ask, rest)
    x.label(rest)
    _suspend(x, again)


Wait = tuple[Condition, Callable[[], Condition], Callable[[], Sequence[Val] | None]]


def until(
    s: OpContext,
    begin: Callable[[str], Wait],
    why: str = "only the host knows whether all have come",
    *,
    naps: bool = True,
) -> list[Val]:
    """Suspend until a condition is met, which is tested each time; then have its effect.

    `begin` is called in the block where the test starts, with a label from which Python runs the
    instruction, for the reason `why`. It returns whether compiled code can test the wait, the test,
    and the effect, which returns the words of the results. Without `naps` Python tests it each
    time.
    """
    x, again = s.x, s.x.fresh("again")
    look, yes, stuck, slow, done = map(x.fresh, ("look", "yes", "stuck", "slow", "done"))
    x.jump(again)
    x.label(again)
    known, met, take = begin(slow)
    x.branch(known, look, slow)
    x.label(look)
    x.branch(met(), yes, stuck)
    x.label(stuck)
    if naps:
        nap(x, s.e.unit.site(s.op), slow, again)
    else:
        x.jump(slow)
    x.label(slow)
    hosts = [n for native in s.e.host_fallback(s.op, why, again=again) for n in native.names]
    left = x.here
    x.jump(done)
    x.label(yes)
    own = take() or []
    passed(x)
    right = x.here
    x.jump(done)
    x.label(done)
    pairs = zip(hosts, own, strict=True)
    return [x.phi(I64, [(a, left), (b, right)]) for a, b in pairs]


def passed(x: Text) -> None:
    """Count an ended wait: the deadlock check sees progress."""
    place = x.at("%ctx", Word.PASSED.offset)
    x.store(I64, x.new(f"add i64 {x.load(I64, place, 8)}, 1"), place, 8)


def finish(x: Text, name: str) -> str:
    """The whole function: ptr f(context, frame, memory, capacity)."""
    x.declare(_DECLARED)
    status = x.at("%ctx", Word.STATUS.offset)
    x.store(I64, DONE, status, 8)
    x.jump("end")
    x.label("failed")
    x.store(I64, BROKEN, x.at("%ctx", Word.STATUS.offset), 8)
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
    return x.function(head, [_BEGIN])
