"""C++ orchestrations: the graph that an unmodified source submits through its runtime's table.

The source is compiled against the headers of its own runtime. `runtime.inc` fills the table of
functions and encodes each call as words; this module reads the words. It runs in the child process
with the native code (`worker.py`).
"""

from __future__ import annotations

import ctypes as c
import mmap
from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, Loc, Note, PtoError, fail
from pto.cxx.native import NativeBuild, lines_of
from pto.graphs.footprint import SMALL
from pto.graphs.model import (
    Graph,
    GraphBuffer,
    GraphScope,
    HostUse,
    Kind,
    Predicate,
    Reason,
    SourcePlace,
    Task,
    TaskArg,
    TensorBox,
    Use,
)
from pto.graphs.tensormap import TensorMap

Bytes = npt.NDArray[np.uint8]
_KINDS: tuple[Kind, ...] = ("task", "dummy", "allocation")
_USES = (Use.IN, Use.OUT, Use.INOUT, Use.OVERWRITE, Use.UNTRACKED)  # by number of the runtime
_COMPARISONS = ("", "==", "!=", ">", "<", ">=", "<=")
_SLOTS = ("cube", "vector", "vector")  # of the kernels of a task
_DEPTH = 64  # of scopes, the outermost included: PTO2_MAX_SCOPE_DEPTH of simpler
_DEFINED = 16  # added to a use: the created buffer has an initial value
_PAGE = 4096
_UNDEFINED = 0xA5  # in bytes without a value: a store of 0 by scalar code shows as a change


class _Host(c.Structure):
    """Host of runtime.inc."""

    SUBMIT = c.CFUNCTYPE(c.c_int64, c.POINTER(c.c_int64), c.c_int64)
    ALLOCATE = c.CFUNCTYPE(c.c_int64, c.c_int64)
    STORE = c.CFUNCTYPE(None, c.POINTER(c.c_int64), c.c_int64, c.c_int64)
    SCOPE = c.CFUNCTYPE(None, c.c_int64, c.c_int64, c.POINTER(c.c_int64), c.c_int64)
    FATAL = c.CFUNCTYPE(None, c.c_int64, c.c_char_p, c.POINTER(c.c_int64), c.c_int64)
    _fields_ = [
        ("submit", SUBMIT),
        ("allocate", ALLOCATE),
        ("load", SUBMIT),
        ("store", STORE),
        ("scope", SCOPE),
        ("fatal", FATAL),
        ("clusters", c.c_int64),
        ("vectors", c.c_int64),
    ]


@dataclass(slots=True)
class GraphMem:
    """Global memory of a graph: buffers by address. Pages are allocated on first access."""

    starts: list[int] = field(default_factory=list[int])
    arrays: list[Bytes] = field(default_factory=list[Bytes])
    _maps: list[mmap.mmap] = field(default_factory=list[mmap.mmap])
    _sorted: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def allocate(self, nbytes: int) -> int:
        """A new buffer of zeros; returns its number."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        try:
            pages = mmap.mmap(-1, -(-max(nbytes, 1) // _PAGE) * _PAGE, flags=flags)
        except OSError:
            raise MemoryError from None
        self._maps.append(pages)
        array = np.frombuffer(pages, np.uint8)[:nbytes]
        start = array.ctypes.data if nbytes else np.frombuffer(pages, np.uint8).ctypes.data
        self.starts.append(start)
        self.arrays.append(array)
        insort(self._sorted, (start, len(self.starts) - 1))
        return len(self.starts) - 1

    def find(self, address: int) -> tuple[int, int]:
        """The buffer that an address points into, or just behind, and the offset there."""
        at = bisect_right(self._sorted, (address, 1 << 62)) - 1
        if at >= 0:
            start, number = self._sorted[at]
            if address <= start + self.arrays[number].size:
                return number, address - start
        raise fail("PTO-M114", f"{address:#x} is in no memory of the graph")


class Orchestration:
    """One run of an orchestration: submissions become tasks of a graph."""

    def __init__(
        self,
        native: NativeBuild,
        source: Path,
        kernels: Mapping[int, tuple[str, str]],
        cores: tuple[int, int],
        memory: GraphMem,
    ) -> None:
        self.graph = Graph()
        self.memory = memory
        self.finish: Callable[[list[int] | None], None] = lambda tasks: None
        self.error: PtoError | None = None
        self.is_dry = self.is_watched = False
        self.in_order = (
            True  # a store waits for all tasks, not only for those that the runtime waits for
        )
        self.assumed = 0  # values that a dry run made up
        self._native = native
        self._source = source.resolve()
        self._kernels = kernels  # by number: name and side
        self._cores: dict[str, int] = dict(zip(("cube", "vector"), cores, strict=True))
        self._map = TensorMap(self.graph)
        self._scopes = [0]
        self.graph.scopes.append(GraphScope(0, None, False))
        self._host = _Host(
            _Host.SUBMIT(self._guarded(self._submit, 1)),
            _Host.ALLOCATE(self._guarded(self._allocate, 0)),
            _Host.SUBMIT(self._guarded(self._load, 0)),
            _Host.STORE(self._guarded(self._store, None)),
            _Host.SCOPE(self._guarded(self._scope, None)),
            _Host.FATAL(self._guarded(self._fatal, None)),
            *cores,
        )

    def _guarded(
        self, function: Callable[..., object], failed: int | None
    ) -> Callable[..., object]:
        """ctypes drops exceptions of a callback: keep the first, and stop the orchestration."""

        def call(*words: object) -> object:
            if self.error is not None:
                return failed
            try:
                return function(*words)
            except PtoError as error:
                self.error = error
            except MemoryError:
                self.error = fail("PTO-U245", "the graph needs more memory than there is")
            return failed

        return call

    # ---- buffers

    def adopt(self, number: int, name: str) -> GraphBuffer:
        """A buffer of the caller: an argument of the graph."""
        existing = self.graph.buffers.get(number)
        return existing or self._buffer(number, self.memory.arrays[number].size, name)

    def _buffer(self, number: int, nbytes: int, name: str = "") -> GraphBuffer:
        address = self.memory.starts[number]
        buffer = GraphBuffer(number, address, nbytes, name, scope=self._scopes[-1])
        self.graph.buffers[number] = buffer
        return buffer

    def _allocate(self, nbytes: int) -> int:
        try:
            number = self.memory.allocate(nbytes)
        except MemoryError:
            message = f"the orchestration creates a buffer of {nbytes:,} bytes: there is no memory"
            raise fail("PTO-U245", message) from None
        if self.is_watched and nbytes <= SMALL:
            self.memory.arrays[number][:] = _UNDEFINED
        buffer = self._buffer(number, nbytes)
        buffer.creator, buffer.initial = len(self.graph.tasks), False
        return buffer.address

    # ---- calls of the orchestration

    def _submit(self, words: c.Array[c.c_int64], count: int) -> int:
        reader = _Words(words[:count])
        kind, cube, first, second, blocks, dependencies, together = reader.take(7)
        op, target, address, width = reader.take(4)
        before = reader.take(reader.one())
        number = len(self.graph.tasks)
        arguments = [self._argument(reader) for _ in range(reader.one())]
        scalars = reader.take(reader.one())
        where = self._where(reader.take(reader.one()))
        kernels = tuple(None if k < 0 else k for k in (cube, first, second))
        assert len(kernels) == 3
        named = [self._kernels.get(k, (f"kernel {k}", ""))[0] for k in kernels if k is not None]
        scope = self._scopes[-1]
        task = Task(
            number,
            _KINDS[kind],
            kernels,
            " + ".join(dict.fromkeys(named)) or _KINDS[kind],
            blocks,
            arguments,
            scalars,
            dependencies,
            where,
            scope,
            self.graph.scopes[scope].is_manual,
            Predicate(address, width, _COMPARISONS[op], target) if op else None,
        )
        self._require(task, before, bool(together))
        self.graph.tasks.append(task)
        for earlier in before:
            self.graph.connect(earlier, number, Reason.EXPLICIT)
        self._map.submit(task)
        return 0

    def _require(self, task: Task, before: Sequence[int], together: bool) -> None:
        """Refuse a task that the runtime would refuse, or that would hang."""
        used = [(k, side) for k, side in zip(task.kernels, _SLOTS, strict=True) if k is not None]
        for number, side in used:
            name, kind = self._kernels.get(number, ("", ""))
            if not kind:
                numbers = ", ".join(map(str, sorted(self._kernels)))
                message = f"there is no kernel {number}; there are {numbers}"
                raise _at(task.where, "PTO-G001", message)
            if kind != side:
                message = (
                    f"{task.title} runs {name} on a {side} core; it is a kernel for {kind} cores"
                )
                raise _at(task.where, "PTO-G001", message)
        if task.kind == "task" and (not used or task.blocks < 1):
            has = "no kernel" if not used else f"{task.blocks} blocks"
            raise _at(task.where, "PTO-G001", f"{task.title} has {has}: the runtime refuses it")
        late = [n for n in before if not 0 <= n < task.number]
        if late:
            message = f"{task.title} depends on task {late[0]}, which was not submitted"
            raise _at(task.where, "PTO-G002", message)
        side = min((side for _, side in used), default="vector")  # of a mixed task: cube
        if together and task.blocks > self._cores[side]:
            message = (
                f"{task.title} must start {task.blocks} blocks at once, and the chip has"
                f" {self._cores[side]} {side} cores: it never starts"
            )
            raise _at(task.where, "PTO-G006", message)

    def _argument(self, reader: _Words) -> TaskArg:
        use, address, start, name, width, manual = reader.take(6)
        buffer, offset = self.memory.find(address)
        dims = reader.one()
        pairs = reader.take(2 * dims)
        defined, use = divmod(use, _DEFINED)
        if defined:
            self.graph.buffers[buffer].initial = True
        region = TensorBox(
            buffer,
            start + offset // max(width, 1),
            tuple(pairs[::2]),
            tuple(pairs[1::2]),
            width,
            _text(name),
        )
        return TaskArg(region, _USES[use], not manual)

    def _ready(self, words: list[int], writes: bool) -> tuple[int, int, int]:
        """Buffer, offset and width of one element, after the tasks that the runtime waits for."""
        reader = _Words(words)
        address = reader.one()
        region = self._argument(reader).region
        where = self._where(reader.take(reader.one()))
        waited = self._map.writers(region)
        if writes:  # for their readers too
            waited += [after for before, after in self.graph.edges if before in waited]
        buffer, offset = self.memory.find(address)
        width = region.itemsize
        use = HostUse(
            buffer, (offset, offset + width), writes, len(self.graph.tasks), waited, where
        )
        self.graph.accesses.append(use)
        if not self.is_dry:
            self.finish(None if writes and self.in_order else waited)
        return buffer, offset, width

    def _load(self, words: c.Array[c.c_int64], count: int) -> int:
        buffer, offset, width = self._ready(words[:count], False)
        if self.is_dry and self.graph.buffers[buffer].creator is not None:
            self.assumed += 1
        raw = self.memory.arrays[buffer][offset : offset + width].tobytes()
        return int.from_bytes(raw.ljust(8, b"\0"), "little", signed=True)

    def _store(self, words: c.Array[c.c_int64], count: int, value: int) -> None:
        buffer, offset, width = self._ready(words[:count], True)
        raw = (value & ((1 << 64) - 1)).to_bytes(8, "little")[:width]
        self.memory.arrays[buffer][offset : offset + width] = np.frombuffer(raw, np.uint8)

    def _scope(self, begins: int, manual: int, words: c.Array[c.c_int64], count: int) -> None:
        scopes, now = self.graph.scopes, len(self.graph.tasks)
        if begins:
            where = self._where(words[1:count])
            parent = self._scopes[-1]
            if len(self._scopes) == _DEPTH:
                raise _at(where, "PTO-G003", f"more than {_DEPTH} scopes are open here")
            if scopes[parent].is_manual and not manual:
                outer = scopes[parent].where
                note = () if outer is None else (Note("the manual scope", outer.loc),)
                message = (
                    "an automatic scope begins inside a manual scope, which the runtime refuses"
                )
                raise PtoError(Diagnostic("PTO-G003", message, where.loc, notes=note))
            scopes.append(GraphScope(len(scopes), parent, bool(manual), where))
            self._scopes.append(len(scopes) - 1)
        elif len(self._scopes) > 1:
            scopes[self._scopes.pop()].end = now
        else:
            where = self._where(words[1:count])
            raise _at(where, "PTO-G003", "a scope ends here that was never begun")

    def _fatal(self, code: int, text: bytes, words: c.Array[c.c_int64], count: int) -> None:
        message = text.decode(errors="replace")
        code_text = f" (error {code})" if code > 0 else ""
        where = self._where(words[1:count])
        raise _at(where, "PTO-G004", f"the orchestration stopped{code_text}: {message}")

    def _where(self, frames: Sequence[int]) -> CallChain:
        return CallChain(self._native.path, self._source, tuple(frames))

    # ---- the whole

    def run(self, arguments: Sequence[int]) -> None:
        """Call the entry; every submission is in the graph afterwards."""
        words = (c.c_int64 * len(arguments))(*arguments)
        self._native.lib.pto_graph_bind(c.byref(self._host))
        self._native.lib.pto_graph_run(words)
        if self.error is not None:
            raise self.error
        if len(self._scopes) > 1:
            scope = self.graph.scopes[self._scopes[-1]]
            raise _at(scope.where, "PTO-G003", "a scope begins here that never ends")


@dataclass(frozen=True, slots=True)
class CallChain:
    """Return addresses, innermost first, from the base of the build."""

    path: Path  # of the build
    source: Path
    frames: tuple[int, ...]

    @property
    def loc(self) -> Loc | None:
        """The innermost line of the orchestration itself, past the headers of its runtime."""
        return next(iter(_lines(self)), None)

    @property
    def callers(self) -> Sequence[Loc]:
        return _lines(self)[1:]


@lru_cache(4096)
def _lines(of: CallChain) -> tuple[Loc, ...]:
    """Lines of the orchestration, innermost first."""
    locations = lines_of(of.path, tuple(frame for frame in of.frames if frame > 0))
    in_source = (at for at in locations if at.line and of.source.parent in Path(at.file).parents)
    return tuple(dict.fromkeys(Loc(at.file, at.line) for at in in_source))


class _Words:
    """Reads the words of one call in order."""

    def __init__(self, words: list[int]) -> None:
        self._words = words
        self._at = 0

    def one(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> list[int]:
        self._at += count
        return self._words[self._at - count : self._at]


def _at(where: SourcePlace | None, code: str, message: str) -> PtoError:
    return PtoError(Diagnostic(code, message, None if where is None else where.loc))


@cache
def _text(address: int) -> str:
    """A constant text of the build."""
    return c.string_at(address).decode()
