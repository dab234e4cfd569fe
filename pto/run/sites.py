"""Programs that arrive as a stream: agents execute records instead of code.

A front end outside the engine (a compiled kernel, a trace) emits the instructions of its agents as
records. A *site* is one location of its source with one set of types. It becomes one operation that
is checked and compiled once; each further record only supplies operands. Findings are therefore
reported once for each location, as in a loop. The source of records is not known here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pto.core.errors import Diagnostic, Loc, PtoError, fail
from pto.core.memory import Space
from pto.ir.builder import Builder, new_block, new_function, new_module
from pto.ir.graph import Module, Operation, Span, Value
from pto.isa.meaning.kinds import Blocked, Do
from pto.isa.meaning.scalar.arith import wrapper
from pto.isa.row.attributes import Attribute, Enum, Str
from pto.isa.row.instr import Instr
from pto.isa.row.types import Scalar, Type
from pto.isa.scalar.scope import VECSCOPE
from pto.isa.scalar.structure import RETURN
from pto.plan.calls import entry_functions
from pto.plan.memory import alignment, plan_memory
from pto.plan.packing import Item, pack
from pto.plan.sync import insert
from pto.run.machine.agents import Agent, CoScheduler, deadlock, run_cooperatively, waits_of
from pto.run.machine.core import Arrivals, Cluster, Core
from pto.run.machine.device import Device
from pto.run.reference.code import FunctionCode, Regs, Step, Wait, Waits, located
from pto.run.reference.compile import Compiler
from pto.target.facts import Profile
from pto.verify import judge
from pto.verify.functions import first_flag
from pto.verify.operation import check

if TYPE_CHECKING:
    from pto.run.watch.events import Hook


@dataclass(frozen=True, slots=True)
class Given:
    """One operand of a site: its type, the first value of a scalar, the maker of a handle."""

    type: Type
    first: int | float | None = None
    maker: Value | None = None


Operands = Mapping[str, Given | Sequence[Given]]  # by the names of a row

# An attribute of a read: the front end needs the value before it issues anything else.
ANSWERED = "pto.answered"


@dataclass(slots=True)
class Site:
    """One instruction at one location, compiled; `run` takes its operands in the row's order."""

    op: Operation
    code: FunctionCode
    bound: int | None  # the operand that execution gives an address
    made: Value | None  # the handle it makes, for the checks of later sites
    results: bool
    blocks: bool  # it may have to wait

    def run(self, core: Core, values: Sequence[Any]) -> Any:
        """Blocked, the result, or the operand that got an address."""
        code = self.code
        if self.results:
            return code.call(core, list(values))[0]
        regs: Regs = [*values, *[None] * (code.size - len(values))]
        result = code.body.steps[0](core, regs)
        if self.bound is None or isinstance(result, Blocked):
            return result
        return regs[self.bound]


@dataclass(slots=True)
class Bound:
    """An instruction with its operands, inside a vector scope."""

    site: Site | ProgramSite
    values: Sequence[Any]

    def run(self, core: Core) -> None:
        self.site.run(core, self.values)

    @property
    def op(self) -> Operation:
        return self.site.op


class Inside(Protocol):
    """An instruction of a vector scope, ready to run."""

    @property
    def op(self) -> Operation: ...
    def run(self, core: Core) -> None: ...


class ScopeSite:
    """A vector scope at one location: its instructions run as one operation of the vector pipe."""

    made: Value | None = None

    def __init__(self, sites: CallSites, where: Span | Loc | None) -> None:
        self.op = Operation.of(VECSCOPE, where=where)
        self._step: Step = _inside
        self.blocks = sites.tap is not None
        if sites.tap is not None:
            self._step, _ = sites.tap.control(self.op, (_inside, None))

    def run(self, core: Core, values: Sequence[Inside]) -> Any:
        """Run the instructions; Blocked if the pipe takes no more now."""
        return self._step(core, list(values))


def _inside(core: Core, calls: Sequence[Inside]) -> None:
    for call in calls:
        try:
            call.run(core)
        except PtoError as error:
            raise located(error, call.op) from None


class ProgramSite:
    """A function of a program in text form that a front end calls; an agent runs all of it."""

    blocks = False  # its own operations count their waits
    made: Value | None = None

    def __init__(self, sites: CallSites, module: Module, name: str) -> None:
        profile = sites.profile
        _, findings = judge(module, profile=profile.name, device=profile.device)
        sites.note([_at(d, d.loc, d.code in sites.tolerated) for d in findings])
        if sites.tap is not None and first_flag([module.op]) is None:
            module = insert(module, profile)  # as its compiler does
        functions = entry_functions(module, name)
        self.op = next(f for f in functions if f.symbol == name)
        self._placement = plan_memory(functions, profile)
        self._code = Compiler(module, profile, sites.side, sites.tap).code(self.op)

    @property
    def parameters(self) -> list[Type]:
        return [arg.type for arg in self.op.regions[0].block.args]

    def run(self, core: Core, values: Sequence[Any]) -> Waits:
        core.placement = self._placement
        return self._code.gen(core, list(values))


class CallSites:
    """The sites of one side of a program, for a profile."""

    def __init__(
        self,
        profile: Profile,
        side: str,
        tap: Hook | None = None,
        tolerated: Container[str] = (),
    ) -> None:
        self.profile = profile
        self.side = side
        self.tap = tap
        self.tolerated = tolerated  # findings that the front end's own library does not report
        self.module = new_module({"pto.target_arch": Str(profile.name)}, "<records>")
        self.findings: dict[tuple[str, str], Diagnostic] = {}  # warnings, once for each location
        self.remarks: dict[tuple[str, str], Diagnostic] = {}  # those that only a run shows
        self._compiler = Compiler(self.module, profile, side, tap)
        self._count = 0

    def make(
        self,
        row: Instr,
        operands: Operands,
        attrs: Mapping[str, Attribute],
        where: Span | None,
        results: Sequence[Type] = (),
    ) -> Site:
        """Check a record's instruction and compile it. Operands by the row's names."""
        self._judge(row, operands, attrs, where, results)
        self._count += 1
        name = f"site{self._count}"
        builder, op = _built(self.module, name, row, operands, attrs, results, is_constant=False)
        if self.side in ("cube", "vector"):
            builder.function.attrs["pto.kernel_kind"] = Enum("kernel_kind", self.side)
        op.where = where
        if results:
            builder.append(RETURN, {"values": list(op.results)})
        code = self._compiler.code(builder.function)
        binds = row.body.defines if isinstance(row.body, Do) else ""
        bound = code.args[list(operands).index(binds)] if binds else None
        blocks = isinstance(row.body, Do) and row.body.blocks
        return Site(op, code, bound, op.results[0] if results else None, bool(results), blocks)

    def vector(
        self,
        row: Instr,
        operands: Operands,
        attrs: Mapping[str, Attribute],
        where: Span | None,
        results: Sequence[Type],
    ) -> tuple[Operation, FunctionCode]:
        """Check an instruction of a vector scope and compile it; the code gives its results."""
        self._judge(row, operands, attrs, where, results)
        self._count += 1
        name = f"site{self._count}"
        builder, op = _built(
            self.module, name, row, operands, attrs, results, is_constant=False, scoped=True
        )
        op.where = where
        return op, self._compiler.scope_code(builder.function)

    def scope(self, where: Span | Loc | None) -> ScopeSite:
        """A vector scope at a location."""
        return ScopeSite(self, where)

    def _judge(
        self,
        row: Instr,
        operands: Operands,
        attrs: Mapping[str, Attribute],
        where: Span | None,
        results: Sequence[Type],
    ) -> None:
        """Check the rules of the row with the values of the first record."""
        module = new_module({"pto.target_arch": Str(self.profile.name)}, "<site>")
        _built(module, "site", row, operands, attrs, results, is_constant=True)
        findings = check(module, self.profile)
        if not findings:
            return
        loc = where.loc if where else None
        self.note([_at(d, loc, d.code in self.tolerated) for d in findings])

    def remark(self, finding: Diagnostic) -> None:
        """Raise an error; keep a warning about how a program runs, each location once."""
        self.note([finding])
        self.remarks[str(finding.loc), finding.code] = finding

    def note(self, findings: Sequence[Diagnostic]) -> None:
        """Raise errors; keep warnings, each location once."""
        errors = [d for d in findings if d.severity == "error"]
        if errors:
            raise PtoError(*errors)
        self.findings.update({(str(d.loc), d.code): d for d in findings})


def _at(finding: Diagnostic, loc: Any, tolerated: bool) -> Diagnostic:
    severity = "warning" if tolerated else finding.severity
    return Diagnostic(finding.code, finding.message, loc, severity, finding.notes, finding.help)


def _built(
    module: Module,
    name: str,
    row: Instr,
    operands: Operands,
    attrs: Mapping[str, Attribute],
    results: Sequence[Type],
    *,
    is_constant: bool,
    scoped: bool = False,
) -> tuple[Builder, Operation]:
    """A function with one operation on its parameters.

    `is_constant`: known operands are constants. `scoped`: inside a vector scope.
    """
    flat = [
        g for group in operands.values() for g in ((group,) if isinstance(group, Given) else group)
    ]
    function = new_function(
        module, name, [(f"v{n}", argument.type) for n, argument in enumerate(flat)]
    )
    builder = Builder(function)
    pairs = zip(flat, function.regions[0].block.args, strict=True)
    values = iter(
        [_known(builder, argument, arg) if is_constant else arg for argument, arg in pairs]
    )
    named = {
        key: next(values) if isinstance(group, Given) else [next(values) for _ in group]
        for key, group in operands.items()
    }
    if scoped:
        builder.blocks.append(new_block(builder.append(VECSCOPE)))
    return builder, builder.append(row, named, attrs=attrs, results=results)


def _known(builder: Builder, argument: Given, arg: Value) -> Value:
    if argument.maker is not None:
        return argument.maker
    if argument.first is not None and isinstance(argument.type, Scalar):
        return builder.constant(argument.first, argument.type)
    return arg


def scalar_value(type: Scalar, number: int | float) -> Any:
    """A number as a scalar of a type, converted as C does."""
    if type.dtype is None:
        return int(number)
    if type.is_float:
        with np.errstate(all="ignore"):
            return type.dtype.numpy.type(number)
    return wrapper(type)(int(number))


# ---- tiles without an address

_ENDLESS = 1 << 62


@dataclass(slots=True)
class TileSlots:
    """The addresses of tiles that have only a name, for one agent: the planner's packing, run by
    run.

    Only the program knows whether it uses a name again, so a tile keeps its address while there is
    space. Then the least recently used are evicted first; using an evicted tile is an error.
    """

    core: Core
    starts: dict[int, int] = field(default_factory=dict[int, int])
    # by space: kept tiles, the least recently used first
    _kept: dict[Space, dict[int, Item]] = field(
        default_factory=lambda: defaultdict[Space, dict[int, Item]](dict)
    )
    _gone: set[int] = field(default_factory=set[int])

    def plan(self, wanted: Mapping[int, tuple[Space, int, int, int]], pauses: bool = False) -> None:
        """Place names used from record `first` to `last`: name -> (space, bytes, first, last).

        If the program only `pauses` after these records, it may use all of them again.
        """
        spaces: dict[Space, list[tuple[int, Item]]] = defaultdict(list)
        for name, (space, nbytes, first, last) in wanted.items():
            reserved = self._kept[space]
            if name in self._gone:
                raise self._given_up(space, nbytes)
            if name in reserved:
                reserved[name] = reserved.pop(name)
            elif name not in self.starts:
                spaces[space].append((name, Item(first, last, nbytes)))
        for space, named in spaces.items():
            idle = [name for name in self._kept[space] if name not in wanted]
            self._place(space, named, idle, pauses)

    def _place(
        self, space: Space, named: list[tuple[int, Item]], idle: list[int], pauses: bool
    ) -> None:
        reserved, profile = self._kept[space], self.core.profile
        capacity = profile.buffers[space.value]
        align = max(alignment(space, profile), self.core.memory(space).align)
        items = [item for _, item in named]
        end = max(item.last for item in items)
        longer = [Item(item.first, end, item.size) for item in items] if pauses else items
        while (packed := pack(longer, list(reserved.values()), align, capacity)).high > capacity:
            if not idle:
                break
            self._forget(space, idle.pop(0))
        crowded = packed.high > capacity
        if crowded:
            packed = pack(items, list(reserved.values()), align, capacity)
        if packed.high > capacity:
            raise self._full(space, packed.high)
        placed = zip(named, packed.starts, strict=True)
        for (name, item), start in sorted(placed, key=lambda each: each[0][1].first):
            if crowded:
                top = start + item.size
                for other in [n for n, o in reserved.items() if o.start < top and start < o.end]:
                    self._forget(space, other)
            self.starts[name] = start
            reserved[name] = Item(0, _ENDLESS, item.size, start)

    def _forget(self, space: Space, name: int) -> None:
        del self._kept[space][name]
        self._gone.add(name)

    def _given_up(self, space: Space, size: int) -> PtoError:
        return fail(
            "PTO-M120",
            f"a tile of {size} bytes without an address is used again, but its memory now holds"
            f" tiles that were used since: they need all {self.core.profile.buffers[space.value]}"
            f" bytes of {space.value}",
            help="give tiles an address (TASSIGN), or use fewer between the two uses",
        )

    def _full(self, space: Space, need: int) -> PtoError:
        return fail(
            "PTO-M120",
            f"tiles without an address need {need} bytes of {space.value} at once,"
            f" which has {self.core.profile.buffers[space.value]}",
        )


# ---- agents


@dataclass(frozen=True, slots=True)
class Looks:
    """A record that polls shared state, and would poll again: other agents run first."""


Fed = tuple[Site | ProgramSite | ScopeSite, Sequence[Any], Callable[[Any], None] | None]
Feed = Callable[[Core], Iterable[Fed | Looks]]


def _program(core: Core, feed: Iterator[Fed | Looks]) -> Waits:
    """Execute records in order; the next one is fetched when the last one is done."""
    last = Operation("pto.ld_dev")  # for a poll before the first instruction
    looking = Blocked("others to change what it looks at")
    for fed in feed:
        if isinstance(fed, Looks):
            yield Wait(last, looking, looks=True)
            continue
        site, values, then = fed
        last = site.op
        if isinstance(site, ProgramSite):
            yield from site.run(core, values)
            continue
        try:
            while isinstance(blocked := site.run(core, values), Blocked):
                yield Wait(site.op, blocked)
        except PtoError as error:
            raise located(error, site.op) from None
        if site.blocks:
            core.progress += 1
        if then is not None:
            then(blocked)
    return []


@dataclass(frozen=True, slots=True)
class RecordSide:
    """One side of every block: its name, its number of agents, and their records."""

    name: str
    agents: int
    feed: Feed


class RecordLaunch:
    """The blocks of a launch, all or `only` these, with a cooperative scheduler."""

    def __init__(
        self,
        device: Device,
        profile: Profile,
        sides: Sequence[RecordSide],
        blocks: int,
        only: Sequence[int] | None = None,
    ) -> None:
        if blocks < 1:
            raise fail("PTO-U039", f"a launch needs at least one block, got {blocks}")
        self._device = device
        self._profile = profile
        self._sides = sides
        self._blocks = blocks
        self._numbers = iter(range(blocks) if only is None else only)
        self._arrivals = Arrivals()
        self._cores: list[Core] = []
        self._turns = CoScheduler()

    def go_on(self, rounds: int | None = None) -> bool:
        """Run all blocks; False if every agent waits, or has polled `rounds` times."""
        tap = self._device.tap
        with np.errstate(all="ignore"):
            done = self._turns.go_on(self._next_block, tap, rounds=rounds)
            if done and tap is not None:
                tap.observer.end()
        return done

    def _next_block(self) -> list[Agent]:
        number, tap = next(self._numbers, None), self._device.tap
        if number is None:
            return []
        cluster = Cluster(self._device, number, self._blocks, self._arrivals)
        fresh = [
            (Core(cluster, self._profile, side.name, sub, side.agents), side)
            for side in self._sides
            for sub in range(side.agents)
        ]
        self._cores.extend(core for core, _ in fresh)
        if tap is not None:
            for core, _ in fresh:
                tap.begin(core)
        return [_agent(core, side, tap) for core, side in fresh]

    @property
    def moved(self) -> bool:
        """True if an agent made progress in the last call."""
        return self._turns.moved

    @property
    def deadlock(self) -> PtoError:
        return deadlock(*waits_of(self._turns.live))

    @property
    def printed(self) -> list[str]:
        return [line for core in self._cores for line in core.printed]


def carry_on(core: Core, feed: Feed) -> list[str]:
    """Run one agent alone from its current state; returns what it printed."""
    core.printed.clear()
    turns = iter([[Agent(core, _program(core, iter(feed(core))))]])
    with np.errstate(all="ignore"):
        run_cooperatively(lambda: next(turns, []), None)
    return list(core.printed)


def _agent(core: Core, side: RecordSide, tap: Hook | None) -> Agent:
    program = _program(core, iter(side.feed(core)))
    if tap is None:
        return Agent(core, program)
    return Agent(core, tap.around(core, program), partial(tap.finish, core, lambda: None))
