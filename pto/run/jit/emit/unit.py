"""The LLVM module of one kernel: its compiled regions, the functions they share, and loops over
blocks: one around the region that is a whole kernel, and one that several threads run, which takes
blocks from a shared counter."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from pto.ir.graph import Operation
from pto.isa.rules.simt import SLOTS
from pto.run.jit.emit.scheduler import BLOCKS, RESUME, blocks, resume
from pto.run.jit.ir.nest import Nest
from pto.run.jit.llvm import native
from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.llvm.value import Condition, Val
from pto.run.jit.runtime.context import CLEAR, LOG_ENTRY, LOG_HEAD, POLL, Needs, Word
from pto.run.jit.runtime.state import EVENT_IDS, REGISTER_BYTES

BLOCK_LOOP, SHARED_LOOP = "rounds", "taken"
_END = """
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 1000000}
!2 = !{!"branch_weights", i32 1000000, i32 1}
!3 = !{i32 1}
!pto = !{!0, !1, !2, !3}
"""


_COMMON = (
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare i64 @llvm.smin.i64(i64, i64)",
    "declare i64 @llvm.smax.i64(i64, i64)",
    "declare i64 @llvm.ctpop.i64(i64)",
)


def _log_access(name: str) -> str:
    """void f(log, words...): counts every access, and stores those that fit."""
    x = Text()
    count, room = x.load(I64, "%p0", 8), x.load(I64, x.at("%p0", 8), 8)
    x.store(I64, x.new(f"add i64 {count}, 1"), "%p0", 8)

    def keep() -> None:
        place = x.at("%p0", x.add(x.mul(count, 8 * LOG_ENTRY), 8 * LOG_HEAD))
        for n in range(LOG_ENTRY):
            x.store(I64, f"%p{n + 1}", x.at(place, 8 * n), 8)

    x.when(x.compare("ult", count, room), keep)
    x.do("ret void")
    words = ", ".join(f"i64 %p{n + 1}" for n in range(LOG_ENTRY))
    return x.function(f"define internal void {name}(ptr %p0, {words}) nounwind")


class Unit:
    """Functions under construction; linked when the first of them is called."""

    def __init__(self, logs: bool = False) -> None:
        self._regions: dict[str, str] = {}
        self._shared: dict[Hashable, tuple[str, str]] = {}  # key -> name, text
        self.ordered = False  # global memory is accessed at unknown addresses
        self.has_coroutines = False
        self.sites: list[Operation] = []  # where coroutines may wait without asking Python
        self.whole: str | None = None  # the region that is a whole block
        self.needs = Needs(logs)
        self.statuses: dict[str, set[int]] = {}  # shared functions: what they return beside 0
        self.fused: dict[Hashable, int] = {}  # functions that do several instructions: how many
        self.groups: list[tuple[str, ...]] = []  # instructions that run as one loop, in order
        self.nests: list[tuple[tuple[Operation, ...], Nest]] = []  # of groups and instructions
        self.forwarded: list[str] = []  # copies that are not made: products read their source
        self._names = 0
        self._declared: dict[str, None] = dict.fromkeys(_COMMON)
        self._code: native.Code | None = None
        self._lock = threading.Lock()
        self.skipped: Counter[tuple[str, str]] = Counter()  # (operation, why) run by the reference

    def count_fallback(self, op: Operation, why: str) -> None:
        """Note an operation that the reference engine runs inside compiled code."""
        self.skipped[op.name, why] += 1

    @property
    def recorded(self) -> tuple[int, int, int]:
        """How many groups, nests and forwarded copies there are; set, to drop those of a region
        that is given up."""
        return len(self.groups), len(self.nests), len(self.forwarded)

    @recorded.setter
    def recorded(self, counts: tuple[int, int, int]) -> None:
        groups, nests, forwarded = counts
        del self.groups[groups:], self.nests[nests:], self.forwarded[forwarded:]

    def declare(self, line: str) -> None:
        self._declared[line] = None

    def new_name(self) -> str:
        return f"region{len(self._regions)}"

    def add(self, name: str, text: str) -> None:
        self._regions[name] = text

    def shared(self, key: Hashable, make: Callable[[str], str]) -> str:
        """The name of a function that many places call, made once; `make(name)` gives its text."""
        found = self._shared.get(key)
        if found is None:
            self._names += 1
            name = f"@shared{self._names}"
            self._shared[key] = found = (name, make(name))  # nothing is kept if it raises
        return found[0]

    def log_access(self) -> str:
        """The name of the function that logs an access to global memory."""
        return self.shared("log_access", _log_access)

    @property
    def _functions(self) -> dict[str, str]:
        """The functions that Python calls."""
        if self.whole is None and not self.has_coroutines:
            return self._regions
        if self.whole is None:
            return {**self._regions, RESUME: resume(), BLOCKS: blocks()}
        loops = {
            BLOCK_LOOP: block_loop(BLOCK_LOOP, self.whole, self.needs),
            SHARED_LOOP: shared_block_loop(SHARED_LOOP, BLOCK_LOOP),
        }
        return {**self._regions, **loops}

    @property
    def text(self) -> str:
        shared = (text for _, text in self._shared.values())
        return "\n".join([*self._declared, *shared, *self._functions.values(), _END])

    def function(self, name: str) -> Any:
        """A linked region, called with a context and an argument buffer."""
        return native.function(self._linked().address(name))

    def block_loops(self) -> tuple[Any, Any]:
        """The linked loop over blocks, and the one that takes them from a counter."""
        code = self._linked()
        return native.rounds(code.address(BLOCK_LOOP)), native.rounds(code.address(SHARED_LOOP))

    def coroutine(self, name: str) -> tuple[Any, Any, Any]:
        """The functions that start a linked coroutine, resume one, and run several from block to
        block."""
        code = self._linked()
        resumes = native.function(code.address(RESUME)), native.blocks(code.address(BLOCKS))
        return native.coroutine(code.address(name)), *resumes

    def site(self, op: Operation) -> int:
        """A number above 0 for a wait."""
        self.sites.append(op)
        return len(self.sites)

    def _linked(self) -> native.Code:
        with self._lock:  # of two threads that come first, one links: code goes with its owner
            if self._code is None:
                self._code = native.target().code(self.text, list(self._functions))
            return self._code


def block_loop(name: str, region: str, needs: Needs) -> str:
    """i64 f(context, frame, first, end, _): runs blocks; returns the block that failed, or
    `end`."""
    x = Text()

    def word(index: int) -> str:
        return x.load("ptr", x.at("%ctx", 8 * index), 8)

    def ask(what: int) -> Condition:
        status = x.new(f"call i32 {call}(ptr %ctx, i32 {what})")
        return x.compare("eq", status, 0, "i32")

    call, due = word(Word.CALL), word(Word.POLL_FLAG)
    bases = {
        memory: x.load("ptr", x.at(word(Word.TABLE), 16 * memory), 8)
        for memory, _, _ in needs.cleared
    }

    def zero(start: str, nbytes: int) -> None:
        x.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {nbytes}, i1 false)")

    def run(state: list[str]) -> list[Val]:
        (block,) = state

        def fail() -> None:
            x.do(f"ret i64 {block}")

        x.store(I64, block, x.at("%ctx", Word.BLOCK.offset), 8)
        for index, what in ((due, POLL), (x.at("%ctx", Word.DIRTY.offset), CLEAR)):
            rest, go = x.fresh("rest"), x.fresh("go")
            x.branch(x.compare("ne", x.load_flag(index), 0), rest, go, ", !prof !1")
            x.label(rest)
            x.leave_unless(ask(what), fail)
            x.jump(go)
            x.label(go)
        for memory, first, end in needs.cleared:
            zero(x.at(bases[memory], first), end - first)
        for start in sorted(needs.flags):
            zero(x.at(word(Word.FLAGS), start), 4 * EVENT_IDS)
        if Word.REGISTERS in needs.words:
            now, first = word(Word.REGISTERS), word(Word.FIRST)
            given = f"ptr {now}, ptr {first}, i64 {REGISTER_BYTES}, i1 false"
            x.do(f"call void @llvm.memcpy.p0.p0.i64({given})")
        if Word.KEPT in needs.words:
            zero(word(Word.KEPT), 8 * SLOTS)
        status = x.new(f"call i32 @{region}(ptr %ctx, ptr %frame)")
        x.leave_unless(x.compare("eq", status, 0, "i32"), fail)
        return [x.add(block, 1)]

    def more(state: list[str]) -> Condition:
        return x.compare("slt", state[0], "%end")

    (last,) = x.while_loop([I64], ["%first"], more, run)
    x.do(f"ret i64 {last}")
    return x.function(f"define i64 @{name}(ptr %ctx, ptr %frame, i64 %first, i64 %end, ptr %where)")


def shared_block_loop(name: str, rounds: str) -> str:
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
