"""Agreement of the engines: what a test runs on the reference engine also runs compiled.

The harnesses of the tests and every launch come here. `pytest --agree` compares every program and
`--no-agree` none; otherwise a sample does: one in twelve by its text, and the first one of a file
that has a row, a profile and element types together. Any NaN is as good as another.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from pto.core import global_layout
from pto.core.errors import PtoError
from pto.core.tile import Tile
from pto.ir.graph import Module, Operation, Value
from pto.isa.meaning.kinds import ItemLaunch
from pto.isa.row import types as t
from pto.run.jit.compiler import NativeCompiler
from pto.run.jit.emit.fusion import FusingEmitter
from pto.run.jit.emit.unit import Unit
from pto.run.launch.prepared import LaunchGrid, PreparedKernel
from pto.run.machine.core import Cluster, Core
from pto.run.reference.compile import Compiler
from pto.target.facts import Profile
from tests.fallbacks import require_listed

ONE_IN = 12
Outcome = list[Any] | PtoError


@dataclass
class State:
    """What is compared now: `mode` is off, sample or all."""

    mode: str = "off"
    here: bool = True  # not in tests that compare engines themselves
    counts: bool = True  # host fallbacks are held to the tables of `fallbacks.py`
    seen: set[Any] = field(default_factory=set)  # of the file at hand: row, profile, elements
    compared: int = 0


STATE = State()


def wanted(module: Module, profile: Profile, text: str = "") -> bool:
    """Whether this program runs on both engines."""
    if STATE.mode == "off" or not STATE.here:
        return False
    ops = list(module.walk())
    rows = {(op.name, profile.name, _elements(op)) for op in ops if op.row is not None}
    fresh = rows - STATE.seen
    STATE.seen |= rows
    if STATE.mode == "all":
        return True
    text = text or " ".join(f"{op.name} {op.attrs} {_elements(op)}" for op in ops)
    return bool(fresh) or crc32(text.encode()) % ONE_IN == 0


def _elements(op: Operation) -> tuple[str, ...]:
    """The element types of operands and results, each once."""
    return tuple(dict.fromkeys(_element(v) for v in (*op.operands, *op.results)))


def _element(value: Value) -> str:
    type = value.type
    if isinstance(type, t.TileBuf):
        return str(type.tile.dtype)
    return str(getattr(type, "elem", type))


# ---- code of one agent, or of several, on given values


def run(
    agents: Sequence[tuple[Core, list[Any]]],
    module: Sequence[Module],
    go: Callable[[Sequence[tuple[Core, list[Any]]], Callable[[int], Compiler]], list[Any]],
    text: str = "",
) -> list[Any]:
    """`go(agents, compilers)` on the reference engine; with copies on the other one before."""
    profile = agents[0][0].profile

    def plain(n: int) -> Compiler:
        return Compiler(module[n], profile, agents[n][0].side)

    asked = [wanted(m, profile, text) for m in module]  # each of them is seen
    if True not in asked:
        return go(agents, plain)
    STATE.compared += 1
    memo = _shared(profile, *(core.placement for core, _ in agents))
    twins = copy.deepcopy([(core, values) for core, values in agents], memo)
    unit = Unit()

    def native(n: int) -> Compiler:
        return NativeCompiler(unit, agents[n][0].placement, module[n], profile, agents[n][0].side)

    ours, theirs = _outcome(lambda: go(agents, plain)), _outcome(lambda: go(twins, native))
    about = f"compiled code is not the reference of\n{text}"
    _same_outcome(ours, theirs, about)
    for (core, values), (twin, copies) in zip(agents, twins, strict=True):
        _same_cores(core, twin, about)
        _same_values(values, copies, about)
    if isinstance(ours, PtoError):
        raise ours
    _require_compiled(twins[0][0].cluster.fallbacks, about)
    return ours


def _require_compiled(counts: Mapping[tuple[str, str], int], about: str) -> None:
    if STATE.counts:
        require_listed(counts, about)


def _shared(*facts: Any) -> dict[int, Any]:
    """What copies have in common with the original: facts, which are compared by `is`."""
    kept: list[Any] = [*facts, *global_layout.GLOBAL_LAYOUTS.values()]
    return {id(each): each for each in kept}


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except PtoError as error:
        return error


def _same_outcome(ours: Outcome, theirs: Outcome, about: str) -> None:
    if isinstance(ours, PtoError) or isinstance(theirs, PtoError):
        assert _said(ours) == _said(theirs), about
        return
    _same_values(ours, theirs, about)


def _said(outcome: Outcome) -> Any:
    if isinstance(outcome, PtoError):
        return [(d.code, d.message, d.loc) for d in outcome.diagnostics]
    return "no error"


def _same_values(ours: Iterable[Any], theirs: Iterable[Any], about: str) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(mine, np.ndarray):
            require_same_bytes(mine, other, about)
        elif isinstance(mine, Tile):
            assert mine.known_valid == other.known_valid, about
            assert (mine.type, mine.address) == (other.type, other.address), about
        elif isinstance(mine, int | np.generic):
            assert type(mine) is type(other), about
            require_same_bytes(np.asarray(mine), np.asarray(other), about)


def _same_buffers(ours: Cluster, theirs: Cluster, about: str) -> None:
    for mine, other in zip(ours.agents, theirs.agents, strict=True):
        for space in {*mine._buffers, *other._buffers}:
            pair = mine.memory(space).data, other.memory(space).data
            require_same_bytes(*pair, f"{space.value}: {about}", typed=False)


def _same_cores(core: Core, twin: Core, about: str) -> None:
    _same_buffers(core.cluster, twin.cluster, about)
    for mine, other in zip(core.cluster.agents, twin.cluster.agents, strict=True):
        assert list(mine.printed) == list(other.printed), about
        assert _set(mine.flags) == _set(other.flags), about
        for name, value in mine.registers.items():
            known = (isinstance(value, int) or _is_numbers(value)) and " of " not in name
            assert not known or other.registers.get(name) == value, about
    for mine, other in zip(core.device._arrays, twin.device._arrays, strict=True):
        require_same_bytes(mine.memory.data, other.memory.data, f"gm: {about}", typed=False)


def _has_work_items(module: Module) -> bool:
    return any(isinstance(op.body, ItemLaunch) for op in module.walk())


def _is_numbers(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(v, int) for v in value)


def _set(flags: Mapping[Any, int]) -> dict[Any, int]:
    return {name: count for name, count in flags.items() if count}


def require_same_bytes(ours: Any, theirs: Any, about: str, *, typed: bool = True) -> None:
    """Equal bits, but for NaN; of bytes that have no type, NaN of any float they could be."""
    a, b = np.ascontiguousarray(ours), np.ascontiguousarray(theirs)
    assert (a.dtype, a.shape) == (b.dtype, b.shape), about
    a, b = a.reshape(-1), b.reshape(-1)
    if typed:
        width = f"u{a.dtype.itemsize}"
        wrong = (a.view(width) != b.view(width)) & ~((a != a) & (b != b))
    else:
        wrong = different(a.view(np.uint8), b.view(np.uint8))
    at = np.flatnonzero(wrong)
    assert not at.size, f"{at.size} differ, first {at[0]}: {a[at[0]]} {b[at[0]]}; {about}"


_FORMS = ((np.uint32, 0x7F800000), (np.uint16, 0x7C00), (np.uint16, 0x7F80))


def different(a: Any, b: Any) -> Any:
    """The bytes that differ, but for those of a NaN of any float they could be."""
    found = a != b
    if not found.any():
        return found
    for width, exponent in _FORMS:
        size = np.dtype(width).itemsize
        whole = a.size // size * size
        words = [x[:whole].view(width) & (0x7FFFFFFF >> (8 * (4 - size))) for x in (a, b)]
        both = (words[0] > exponent) & (words[1] > exponent)
        found[:whole] &= ~np.repeat(both, size)
    return found


# ---- launches


class Twin:
    """What a kernel was made of, the agents it made last, and itself on the other engine."""

    def __init__(self, *made_of: Any) -> None:
        self.made_of = made_of
        self.last: Cluster | None = None
        self._other: PreparedKernel | None = None

    @property
    def can(self) -> bool:
        return self.made_of[3] is None  # nobody watches

    @property
    def other(self) -> PreparedKernel:
        if self._other is None:
            *facts, _, engine = self.made_of
            self._other = PreparedKernel(
                *facts, None, "jit" if engine == "reference" else "reference"
            )
        return self._other


def _watch_kernels() -> None:
    made, started = PreparedKernel.__init__, LaunchGrid.cluster

    def init(
        self: Any,
        module: Any,
        functions: Any,
        profile: Any,
        tap: Any = None,
        engine: Any = "reference",
        *more: Any,
        **named: Any,
    ) -> None:
        made(self, module, functions, profile, tap, engine, *more, **named)
        self.twin = Twin(module, functions, profile, tap, engine)

    def cluster(self: Any, block: int = 0) -> Cluster:
        self.kernel.twin.last = started(self, block)
        return self.kernel.twin.last

    PreparedKernel.__init__, LaunchGrid.cluster = init, cluster  # type: ignore[method-assign]


def install() -> None:
    """From now on every launch without an observer is one of two."""
    _watch_kernels()
    FusingEmitter.forwards = False  # buffers are compared too
    original, direct = LaunchGrid.run, PreparedKernel.direct

    def launched(self: PreparedKernel, *given: Any) -> Any:
        """Calls like one before are launches too."""
        return None if STATE.here else direct(self, *given)

    PreparedKernel.direct = launched  # type: ignore[method-assign]

    def both(self: LaunchGrid) -> None:
        kernel, chip = self.kernel, self.device
        known: Twin = kernel.twin  # type: ignore[attr-defined]
        if not known.can or chip.ranks > 1 or not wanted(known.made_of[0], kernel.profile):
            original(self)
            return
        STATE.compared += 1
        memo = _shared(kernel.profile)
        memo[id(chip._world)] = None  # streams and what is in them stay with the original
        copied, values = copy.deepcopy((chip, self.values), memo)
        twin = _outcome(lambda: LaunchGrid(known.other, copied, values, self.blocks))
        for each in (kernel, known.other):
            if each._pool is not None:
                each._pool._idle.clear()  # whose buffers are not new
        ours = _outcome(lambda: original(self))
        theirs = twin if isinstance(twin, PtoError) else _outcome(lambda: original(twin))
        about = f"launch of @{kernel.name}, line {kernel.functions[0].loc}"
        assert _said(ours) == _said(theirs), about
        # A known difference: compiled work items may have stored before one of them is refused.
        partial = isinstance(ours, PtoError) and _has_work_items(known.made_of[0])
        for mine, other in zip(chip._arrays, copied._arrays, strict=True):
            if not partial:
                require_same_bytes(mine.memory.data, other.memory.data, f"gm: {about}", typed=False)
        after: Twin = known.other.twin  # type: ignore[attr-defined]
        # what a stretch that was to be done together had done when it ended is nobody's business
        ended = isinstance(ours, PtoError)
        if self.blocks == 1 and not ended and known.last and after.last:
            _same_buffers(known.last, after.last, about)
        if ended:
            raise ours
        assert self.printed() == twin.printed(), about
        _require_compiled(twin.fallbacks + self.fallbacks, about)

    LaunchGrid.run = both  # type: ignore[method-assign]
