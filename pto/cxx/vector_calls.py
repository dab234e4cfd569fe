"""Vector instructions of C++ kernels: the register file of an agent, and its vector scopes.

The records between the two marks of a scope are one operation of the vector pipe. Vector
instructions outside of a scope make one of their own, up to the next other instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.core.dtypes import DType, dtype
from pto.core.errors import Diagnostic
from pto.core.memory import Space
from pto.core.pointer import Pointer
from pto.cxx import records as r
from pto.cxx.operands import Maker, Plan, pointer
from pto.cxx.register_forms import by_name
from pto.cxx.vector_binding import BoundVector, Number, bind, register_type, type_of
from pto.ir.builder import scalar_type
from pto.ir.graph import Operation
from pto.isa.meaning.vector.masks import full
from pto.isa.meaning.vector.unaligned import EMPTY
from pto.isa.row.instr import Instr
from pto.isa.row.types import Mask, Type, VReg
from pto.observe.order.scopes import note_sources
from pto.run import sites as s
from pto.run.machine.core import Core
from pto.run.reference.code import FunctionCode
from pto.verify.functions import misplaced

BEGIN, END = "vecscope", "end of vecscope"
_ALL = Mask(None)


@dataclass(frozen=True, slots=True)
class ScopeMark:
    """The begin or end of a vector scope in the records of an agent."""

    site: s.ScopeSite
    begins: bool


@dataclass(slots=True)
class Source:
    """An operand that is read from the register file."""

    place: int  # among the operands
    slot: int
    numpy: Any  # the element type as an array has it; None of a mask or a state


@dataclass(slots=True)
class Target:
    """A result that is written to the register file."""

    slot: int
    kept: int | None = None  # the slot of the lanes that the mask leaves
    width: int = 1  # bytes of a lane


@dataclass(slots=True)
class RegisterFile:
    """Vector registers, masks and states of an agent, by slot."""

    is_watched: bool  # an observer follows which operations made them
    values: dict[int, Any] = field(default_factory=dict[int, Any])
    origins: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])


@dataclass(slots=True)
class VectorCall:
    """One vector instruction of an agent, ready to run."""

    op: Operation
    code: FunctionCode
    operands: list[Any]
    sources: Sequence[Source]
    targets: Sequence[Target | None]  # None: a number that C++ computes itself
    mask: int | None  # the slot of the governing mask, of a call that merges
    cleared: Sequence[int]
    registers: RegisterFile

    def run(self, core: Core) -> None:
        registers = self.registers.values
        if self.registers.is_watched:
            self._follow()
        operands = self.operands.copy()
        for source in self.sources:
            value = registers.get(source.slot)
            if source.numpy is not None and value is not None and value.dtype != source.numpy:
                value = np.ascontiguousarray(value).view(source.numpy)
            operands[source.place] = value
        results = self.code.call(core, operands)
        for target, value in zip(self.targets, results, strict=True):
            if target is None:
                continue
            if target.kept is not None and value is not None:
                value = self._merged(target, value)
            registers[target.slot] = value
        for slot in self.cleared:
            registers[slot] = EMPTY

    def _follow(self) -> None:
        """Note the operations on which the operands depend, as definitions show in a program."""
        origins = self.registers.origins
        inherited = {origin for source in self.sources for origin in origins.get(source.slot, ())}
        note_sources(self.op, inherited)
        inherited.add(id(self.op))
        for target in self.targets:
            if target is not None:
                origins[target.slot] = frozenset(inherited)

    def _merged(self, target: Target, value: Any) -> Any:
        """The result in active lanes, and in the others what the register was before."""
        before = self.registers.values.get(target.kept if target.kept is not None else -1)
        mask = full(target.width) if self.mask is None else self.registers.values.get(self.mask)
        if before is None or mask is None:
            return value
        lanes = np.repeat(mask[:: target.width], target.width)
        merged = np.where(lanes, _bytes(value), _bytes(before))
        return merged.view(value.dtype)


def _bytes(value: Any) -> Any:
    return np.ascontiguousarray(value).view(np.uint8)


def is_vector(name: str) -> bool:
    """True for the name of a vector instruction or of a mark of a scope."""
    return name in (BEGIN, END) or name in by_name()


def decoded(sites: s.CallSites, where: Any, call: r.RecordedCall) -> Callable[..., Plan]:
    """The function that makes the plan of a record of a call site."""
    if call.name in (BEGIN, END):
        mark = ScopeMark(sites.scope(where), call.name == BEGIN)
        return lambda values, state: Plan(mark)
    bound = bind(call)
    if bound.row.scope != "vecscope":
        return lambda values, state: _plain(sites, bound, where, values)
    return lambda values, state: Plan(VectorSite(sites, bound, where, values))


def _plain(sites: s.CallSites, bound: BoundVector, where: Any, values: Sequence[int]) -> Plan:
    """The plan of an instruction on UB that is no part of a scope."""
    makers: list[Maker] = []
    operands_by_name: dict[str, s.Given] = {}
    for name in bound.row.operand_names:
        passed = bound.sources.get(name)
        if passed is not None:
            operands_by_name[name] = s.Given(type_of(passed))
            makers.append(pointer(passed, Space.UB, register_type(passed.element)))
        else:
            number = bound.numbers[name]
            operands_by_name[name] = s.Given(number.type, _judged(number, values))
            makers.append(lambda state, words, number=number: number_of(number, words))
    return Plan(sites.make(bound.row, operands_by_name, bound.attrs, where), makers)


def number_of(number: Number, values: Sequence[int]) -> Any:
    """The value of a number operand in a record, as its type has it."""
    if number.passed is None:
        return s.scalar_value(number.type, number.fixed)
    value = r.number_of(number.passed, values)
    if number.bits:
        value = int(value) >> number.shift & (1 << number.bits) - 1
    return s.scalar_value(number.type, value)


class VectorSite:
    """A vector instruction at one location; `call` makes it for the operands of a record."""

    def __init__(
        self, sites: s.CallSites, bound: BoundVector, where: Any, values: Sequence[int]
    ) -> None:
        self._sites = sites
        self._bound = bound
        row = bound.row
        operands_by_name: dict[str, s.Given] = {}
        for name in row.operand_names:
            if name in bound.numbers:
                number = bound.numbers[name]
                operands_by_name[name] = s.Given(number.type, _judged(number, values))
            elif name in bound.sources:
                passed = bound.sources[name]
                operands_by_name[name] = s.Given(_ALL if passed is None else type_of(passed))
            elif _is_ignored(row, name):
                operands_by_name[name] = s.Given(_result_type(bound.results[0]))
        self._names = list(operands_by_name)
        results = [_result_type(passed) for passed in bound.results]
        self.op, self._code = sites.vector(row, operands_by_name, bound.attrs, where, results)
        self._types = {name: operand.type for name, operand in operands_by_name.items()}

    def call(
        self,
        values: Sequence[int],
        registers: RegisterFile,
        pointer: Callable[[Space, DType, int], Pointer],
    ) -> VectorCall:
        """The instruction with the operands of a record, on the register file of an agent."""
        bound, places = self._bound, list[Any]()
        sources: list[Source] = []
        for n, name in enumerate(self._names):
            places.append(None)
            passed = bound.sources.get(name)
            if name in bound.numbers:
                places[n] = number_of(bound.numbers[name], values)
            elif passed is None:
                places[n] = _filled(self._types[name])
            elif passed.tag == r.POINTER:
                kind = register_type(passed.element)
                places[n] = pointer(Space.UB, kind, values[passed.at])
            else:
                sources.append(self._source(registers, n, passed, values))
        return VectorCall(
            self.op,
            self._code,
            places,
            sources,
            [None if p is None else self._target(p, values) for p in bound.results],
            self._mask(values),
            [values[passed.at + 1] for passed in bound.cleared],
            registers,
        )

    def _source(
        self, registers: RegisterFile, position: int, passed: r.Passed, values: Sequence[int]
    ) -> Source:
        slot = values[passed.at]
        if slot < 0:
            slot = _unwritten(registers, passed)
            if passed.tag != r.ALIGN:  # without pending bytes
                self._sites.remark(_never_written(self.op, self._names[position]))
        numpy = register_type(passed.element).numpy if passed.tag == r.REGISTER else None
        return Source(position, slot, numpy)

    def _target(self, passed: r.Passed, values: Sequence[int]) -> Target:
        before, after = values[passed.at : passed.at + 2]
        if not self._bound.merges or passed.tag != r.REGISTER:
            return Target(after)
        return Target(after, before, register_type(passed.element).itemsize)

    def _mask(self, values: Sequence[int]) -> int | None:
        passed = self._bound.sources.get("mask") if self._bound.merges else None
        return None if passed is None else values[passed.at]


def _result_type(passed: r.Passed | None) -> Type:
    return scalar_type(dtype("i32")) if passed is None else type_of(passed)


def _judged(number: Number, values: Sequence[int]) -> int | float:
    value = number_of(number, values)
    return float(value) if number.type.is_float else int(value)


def _is_ignored(row: Instr, name: str) -> bool:
    """A register that the row has for its type alone, and C++ does not pass."""
    return any(o.kind == "vreg" for o in row.operands if o.name == name)


def _filled(type: Type) -> Any:
    """All lanes, or a register of zeros."""
    if isinstance(type, VReg) and type.elem.dtype is not None:
        return np.zeros(type.lanes, type.elem.dtype.numpy)
    return full(1)


def _unwritten(registers: RegisterFile, passed: r.Passed) -> int:
    """The slot of a register that nothing has written: zeros."""
    slot = -passed.tag
    if slot not in registers.values:
        empty: dict[int, Any] = {
            r.REGISTER: np.zeros(256, np.uint8),
            r.MASK: np.zeros(256, np.bool_),
            r.ALIGN: EMPTY,
        }
        registers.values[slot] = empty[passed.tag]
    return slot


def _never_written(op: Operation, name: str) -> Diagnostic:
    return op.finding(
        "PTO-U255",
        f"reads {name}, which nothing has written: it holds anything on the chip, and 0 here",
        "warning",
    ).at(op.loc)


VectorPart = (ScopeMark, VectorCall)

# ---- scopes


@dataclass(slots=True)
class VectorScopes:
    """The vector scope that is open in the records of an agent."""

    sites: s.CallSites
    _site: s.ScopeSite | None = None
    _is_written: bool = False  # the kernel wrote the scope; else it ends at the next instruction
    _calls: list[VectorCall | s.Bound] = field(default_factory=list[Any])
    _judged: set[tuple[int, bool]] = field(default_factory=set[tuple[int, bool]])

    def take(self, fed: Any) -> Iterator[s.Fed]:
        """The instructions that are ready to run after another has arrived."""
        part = fed[0]
        if isinstance(part, ScopeMark):
            yield from self._mark(part)
            return
        self._judge(part.op)
        if isinstance(part, VectorCall):
            if self._site is None:
                self._site = self.sites.scope(part.op.where)
            self._calls.append(part)
        elif self._is_written:
            self._calls.append(s.Bound(part, fed[1]))
        else:
            yield from self.flush()
            yield fed

    def _mark(self, mark: ScopeMark) -> Iterator[s.Fed]:
        if not mark.begins:
            yield from self.flush()
            self._site, self._is_written = None, False
            return
        self._judge(mark.site.op)
        if not self._is_written:
            yield from self.flush()
        self._site, self._is_written = mark.site, True

    def flush(self) -> Iterator[s.Fed]:
        """Run what has arrived; a scope that the kernel wrote stays open."""
        if self._site is not None and (self._calls or self._is_written):
            calls, self._calls = self._calls, []
            yield self._site, calls, None
        if not self._is_written:
            self._site = None

    @property
    def is_open(self) -> bool:
        return self._site is not None

    def _judge(self, op: Operation) -> None:
        """Check once that an operation may be where it is."""
        key = id(op), self._is_written
        if key in self._judged:
            return
        self._judged.add(key)
        scope = self._site.op if self._is_written and self._site is not None else None
        broken = misplaced(op, scope, None)
        if broken is not None:
            self.sites.remark(broken.at(op.loc))
