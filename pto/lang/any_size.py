"""Proofs of Python kernels for every size of their arrays.

A kernel is traced for the shapes of a call. Here it is traced again with names for the sizes that
its annotations leave open, so that one proof holds for all of them. Sizes that are equal in the
call get one name. A size that the kernel needs as a number stays the number of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import getclosurevars
from itertools import chain, combinations, islice
from math import prod
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pto.core.errors import PtoError
from pto.lang.call.place import is_users
from pto.lang.captured import names_of
from pto.lang.example import example_of
from pto.lang.file import completed, kernel_values
from pto.lang.parameter import Parameter
from pto.lang.tracing import Shape, Specialised, Tracing
from pto.lang.values.asked import ASKING
from pto.observe.proofs import Proofs
from pto.observe.proofs import prove as prove_module
from pto.plan.calls import entry_functions
from pto.prove.assume import GRID, KnownCall, Stated
from pto.prove.decide import never_negative
from pto.prove.facts import facts
from pto.prove.number import Extreme, Number, Symbol, evaluated, of
from pto.prove.questions import Answer
from pto.prove.values import Guards, ViewAxis
from pto.run.launch.arguments import parameters
from pto.run.launch.call import Blocks, extents_of
from pto.target.profile import profile
from pto.verify import verify
from pto.verify.program import legal_target

if TYPE_CHECKING:
    from pto.lang.kernel import Kernel

Axis = tuple[str, int]  # a parameter, and the number of its axis


@dataclass(frozen=True, slots=True)
class Generalised:
    """A program with sizes as parameters, and the axes that each name stands for."""

    made: Specialised
    axes: Mapping[str, Sequence[Axis]]
    numbers: Mapping[int, Sequence[Axis]]  # sizes that the kernel needs as numbers

    @property
    def assumes(self) -> list[str]:
        """The meaning of the names, the sizes that stayed numbers, and those that tiles limit."""
        equations = (*self.axes.items(), *self.numbers.items())
        return [*(" = ".join([str(n), *map(_axis, axes)]) for n, axes in equations), *self.limits]

    @property
    def limits(self) -> list[str]:
        return [f"{name} <= {most}" for name, most in self.made.limits.items()]

    def whole_tiles(self, assume: Sequence[str], of_call: Mapping[str, int]) -> list[str]:
        """Where a size is a whole number of tiles, a call has windows of whole tiles. Returns what
        they need: no window starts at the end of its array, or beyond. `of_call`: its sizes."""
        stated = Stated(assume=assume)
        uses = (u for f in entry_functions(self.made.module, None) for u in facts(f, stated).uses)
        conditions = [
            _inside_if(axis, use.given, of_call) for use in uses for axis in use.window.axes
        ]
        return list(dict.fromkeys(text for text in conditions if text)) if self.axes else []


def _inside_if(axis: ViewAxis, guards: Guards, of_call: Mapping[str, int]) -> str:
    """When a window is inside though it has the size of its tile; empty if it always is."""
    sizes, starts = (_least(n) for n in (axis.size, axis.offset))
    tile_size = next((n.value for n in sizes if n.value), None)
    start = next((n for n in starts if n != axis.extent), axis.offset)
    if tile_size is None or len(sizes) < 2 or never_negative(axis.extent - start - 1, guards):
        return ""
    moving = ((a, n) for a, n in start.terms if not all(s.is_fixed for s in of(a).symbols()))
    moves = Number(frozenset(moving))
    if any(n % tile_size for _, n in moves.terms):
        return ""
    rest = axis.extent - start + moves
    extents = {s: of_call[s.name] for s in axis.extent.symbols() if s.name in of_call}
    text = f"{start} < {axis.extent} where {tile_size} divides {rest}"
    left, extent = evaluated(rest, extents), evaluated(axis.extent, extents)
    match [(atom, count) for atom, count in moves.terms]:
        case [(Symbol(kind="block"), step)] if (
            left is not None and left % tile_size == 0 and step > 0
        ):
            return f"{text} (at most {-(-left // step)} blocks for {extent})"
        case _:
            return text


def _least(n: Number) -> list[Number]:
    """The parts of a minimum."""
    atom = next((a for a, _ in n.terms), None)
    return [*atom.parts] if isinstance(atom, Extreme) and atom.is_least and n == of(atom) else [n]


def generalised(specialised: Specialised) -> Generalised:
    """The program with as many sizes as parameters as the kernel allows."""
    axes, sizes = _open_sizes(specialised.tracing)
    if _asks(specialised.tracing):
        return Generalised(specialised, {}, {sizes[n]: axes[n] for n in axes})
    subsets = chain.from_iterable(combinations(axes, n) for n in range(len(axes), 0, -1))
    for names in islice(subsets, _TRIED):
        chosen = {name: axes[name] for name in names}
        try:
            general = _named(specialised.tracing, chosen).program()
        except PtoError:  # the kernel needs one of the sizes as a number
            continue
        findings = verify(general.module, profile(specialised.tracing.profile))
        if not any(finding.severity == "error" for finding in findings):
            return Generalised(
                general, chosen, {sizes[n]: axes[n] for n in axes if n not in chosen}
            )
    return Generalised(specialised, {}, {sizes[n]: axes[n] for n in axes})


def _asks(tracing: Tracing) -> bool:
    """True if the kernel, or a function of the user's that it may call, may ask Python for the type
    of a size: it would get another answer where a size has a name."""
    todo: list[object] = [source.function for source in tracing.sources]
    seen = set[object]()
    while todo:
        function = todo.pop()
        if not isinstance(function, FunctionType) or function in seen:
            continue
        seen.add(function)
        names = names_of(function.__code__)
        if not ASKING.isdisjoint(names):
            return True
        reached = [function.__globals__.get(name) for name in names]
        reached += getclosurevars(function).nonlocals.values()
        todo += filter(_is_users, reached)
    return False


_TRIED = 24  # sets of sizes: all of them, all but one, ..


def _is_users(value: object) -> bool:
    return isinstance(value, FunctionType) and is_users(value.__code__.co_filename)


def known_call(specialised: Specialised, args: Sequence[object]) -> KnownCall:
    """The numbers of a call, and its arrays that share memory. `args`: the program's arguments."""
    params = parameters(*entry_functions(specialised.module, None))
    values = {param.name: value for param, value in zip(params, args, strict=False)}
    numbers = {name: n for name, n in values.items() if isinstance(n, int) and name not in GRID}
    arrays = [(name, array) for name, array in values.items() if isinstance(array, np.ndarray)]
    same, shared = dict[str, str](), list[tuple[str, str]]()
    for (a, first), (b, later) in combinations(arrays, 2):
        if a in same or not np.may_share_memory(first, later):
            continue
        if _bytes_of(first) == _bytes_of(later):
            same.setdefault(b, a)
        else:
            shared.append((a, b))
    return KnownCall(numbers, same, shared)


def _bytes_of(array: npt.NDArray[np.generic]) -> tuple[object, ...]:
    """A key that arrays with the same elements share."""
    return array.ctypes.data, array.shape, array.strides, array.itemsize


def example_values(kernel: Kernel[...]) -> list[object] | None:
    """Arguments from the example in the docstring, or from annotations that name all sizes."""
    example = example_of(kernel)
    if example is not None:
        return example.values
    values = completed(kernel, {})
    needed = (p.name for p in kernel.parameters if p.kind == "array")
    return kernel_values(kernel, values, 0) if all(name in values for name in needed) else None


def prove(
    specialised: Specialised,
    args: Sequence[object] = (),
    *,
    blocks: Blocks | None = None,
    assume: Sequence[str] = (),
    numbers_given: Mapping[str, int] | None = None,
    general: Generalised | None = None,
) -> Proofs:
    """Each answer for every size if it is proved there, else for the numbers of the call. If the
    call has a grid, no answer is proved that does not hold for the call on it. `args`: of the
    program; without them numbers and memory of the call are not known."""
    call = known_call(specialised, args)
    legal_target(specialised.module, profile=specialised.tracing.profile)
    general = general or generalised(specialised)
    stated, of_trace = numbers_given or {}, {**_open_sizes(specialised.tracing)[1], **call.numbers}
    numbers = {**stated, **of_trace}

    def answers(program: Specialised, assume: Sequence[str], sizes: Mapping[str, int]) -> Proofs:
        module, name = program.module, specialised.tracing.profile
        functions, arrays = entry_functions(module, None), dict(_sizes(program.tracing))
        some = [f"{size} >= 1" for size in program.tracing.sizes if size not in sizes]
        answered = prove_module(
            module,
            functions,
            profile=name,
            numbers=sizes,
            blocks=blocks,
            assume=[*some, *assume],
            arrays=arrays,
            call=replace(call, numbers=numbers),
        )
        return Proofs((name, _told(a, some)) for name, a in answered)

    proofs = answers(general.made, [*general.limits, *assume], stated)
    facts = [f"{name} == {n}" for name, n in stated.items()]
    facts += [] if blocks is None else [f"blocks == {prod(extents_of(blocks))}"]
    whole_tiles = general.whole_tiles([*facts, *general.limits, *assume], numbers)
    proofs = Proofs(
        (name, _with(a, [*general.assumes, *whole_tiles * (a.question == "bounds")]))
        for name, a in proofs
    )
    is_launch = blocks is not None and _keeps([*assume, *facts], numbers, blocks)
    is_open = any(a.verdict != "proved" for _, a in proofs)
    if not (is_launch or (is_open and all(numbers[n] == v for n, v in stated.items()))):
        return proofs
    independent = [text for text in assume if not any(name in text for name in general.axes)]
    exact = {(name, a.question): a for name, a in answers(specialised, independent, numbers)}
    shapes = "; ".join(
        [*_shapes(specialised.tracing), *(f"{n} = {v}" for n, v in call.numbers.items())]
    )

    # windows of whole tiles are assumed to be inside: the launch may have others
    refuting = {"unknown", "refuted"} if whole_tiles else {"refuted"}

    def chosen(every: Answer, of_call: Answer) -> Answer:
        against = refuting if every.question == "bounds" else {"refuted"}
        if is_launch and of_call.verdict in against:
            return _with(of_call, [shapes])
        return _better(every, of_call, shapes)

    return Proofs((name, chosen(a, exact[name, a.question])) for name, a in proofs)


def _keeps(assume: Sequence[str], numbers: Mapping[str, int], blocks: Blocks) -> bool:
    """True if a call with these numbers is known to satisfy what is assumed."""
    extents = (*extents_of(blocks), 1)
    names = {**numbers, "blocks": prod(extents), **dict(zip(GRID, extents, strict=False))}
    try:
        return Stated(assume=assume).allows({}, names)
    except PtoError:  # a number is not known
        return False


def _better(every: Answer, exact: Answer, shapes: str) -> Answer:
    """The answer for every size, or the one for the shapes of the call if only that is proved."""
    if every.verdict == "proved" or exact.verdict != "proved":
        return every
    failing = f"; not for {every.example}" * (every.example is not None)
    return replace(exact, assumes=(f"{shapes}{failing}", *exact.assumes))


def _told(answer: Answer, some: Sequence[str]) -> Answer:
    """The answer with words for the assumption that sizes are at least 1."""
    others = [text for text in answer.assumes if text not in some]
    return replace(answer, assumes=(*others, *["arrays are not empty"] * bool(some)))


def _with(answer: Answer, assumes: Sequence[str]) -> Answer:
    return replace(answer, assumes=tuple(dict.fromkeys((*assumes, *answer.assumes))))


def _axis(axis: Axis) -> str:
    return f"{axis[0]}.shape[{axis[1]}]"


def _arrays(tracing: Tracing) -> Iterator[tuple[Parameter, Shape]]:
    return zip((p for p in tracing.parameters if p.kind == "array"), tracing.shapes, strict=True)


def _sizes(tracing: Tracing) -> Iterator[tuple[str, str]]:
    """The sizes of arrays in bytes, as formulas."""
    for param, (sizes, kind) in _arrays(tracing):
        if kind.bits % 8 == 0:
            yield param.name, " * ".join(map(str, (kind.bits // 8, *sizes)))


def _shapes(tracing: Tracing) -> Iterator[str]:
    for param, (sizes, _) in _arrays(tracing):
        yield f"{param.name} is {'x'.join(map(str, sizes))}"


def _open_sizes(tracing: Tracing) -> tuple[dict[str, list[Axis]], dict[str, int]]:
    """Names for the sizes that annotations leave open, with their axes and their numbers. A size of
    1 has no name, because the kernel may broadcast it."""
    names: dict[int, str] = {}
    axes: dict[str, list[Axis]] = {}
    taken = {p.name for p in tracing.parameters} | set(tracing.sizes)
    for param, (shape, _) in _arrays(tracing):
        for axis, size in enumerate(shape):
            if isinstance(size, int) and size > 1 and _is_open(param, axis):
                name = names.setdefault(size, f"{param.name}_{axis}")
                axes.setdefault(name, []).append((param.name, axis))
    return (
        {name: axes_of for name, axes_of in axes.items() if name not in taken},
        {name: size for size, name in names.items()},
    )


def _is_open(param: Parameter, axis: int) -> bool:
    return param.sizes is None or param.sizes[axis] is None


def _named(tracing: Tracing, axes: Mapping[str, Sequence[Axis]]) -> Tracing:
    names = {axis: name for name, axes_of in axes.items() for axis in axes_of}
    shapes = [
        (tuple(names.get((param.name, n), size) for n, size in enumerate(sizes)), kind)
        for param, (sizes, kind) in _arrays(tracing)
    ]
    return replace(tracing, shapes=shapes, of_any_size=True)
