"""Proofs of Python kernels for every size of their arrays.

A kernel is traced for the shapes of a call. Here it is traced again with names for the sizes that
its annotations leave open, so that one proof holds for all of them. Sizes that are equal in the
call get one name. A size that the kernel needs as a number stays the number of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pto.core.errors import PtoError
from pto.lang.example import example_of
from pto.lang.file import completed, kernel_values
from pto.lang.parameter import Parameter
from pto.lang.tracing import Shape, Specialised, Tracing
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
    """A program whose sizes are parameters, and the axes that each name stands for."""

    made: Specialised
    axes: Mapping[str, Sequence[Axis]]
    numbers: Mapping[int, Sequence[Axis]]  # sizes that the kernel needs as numbers

    @property
    def assumes(self) -> list[str]:
        """The meaning of the names, the sizes that stayed numbers, and those that tiles limit."""
        each = (*self.axes.items(), *self.numbers.items())
        return [*(" = ".join([str(n), *map(_axis, axes)]) for n, axes in each), *self.limits]

    @property
    def limits(self) -> list[str]:
        return [f"{name} <= {most}" for name, most in self.made.limits.items()]

    def whole_tiles(self, assume: Sequence[str], of_call: Mapping[str, int]) -> list[str]:
        """Where a size is a whole number of tiles, a call has windows of whole tiles. Returns what
        they need: no window starts at the end of its array, or beyond. `of_call`: its sizes."""
        stated = Stated(assume=assume)
        uses = (u for f in entry_functions(self.made.module, None) for u in facts(f, stated).uses)
        each = [_inside_if(axis, use.given, of_call) for use in uses for axis in use.window.axes]
        return list(dict.fromkeys(text for text in each if text)) if self.axes else []


def _inside_if(axis: ViewAxis, given: Guards, of_call: Mapping[str, int]) -> str:
    """When a window is inside though it has the size of its tile; empty if it always is."""
    sizes, starts = (_least(n) for n in (axis.size, axis.offset))
    room = next((n.value for n in sizes if n.value), None)
    start = next((n for n in starts if n != axis.extent), axis.offset)
    if room is None or len(sizes) < 2 or never_negative(axis.extent - start - 1, given):
        return ""
    moving = ((a, n) for a, n in start.terms if not all(s.is_fixed for s in of(a).symbols()))
    moves = Number(frozenset(moving))
    if any(n % room for _, n in moves.terms):
        return ""
    rest = axis.extent - start + moves
    known = {s: of_call[s.name] for s in axis.extent.symbols() if s.name in of_call}
    text = f"{start} < {axis.extent} where {room} divides {rest}"
    left, extent = evaluated(rest, known), evaluated(axis.extent, known)
    match [(atom, count) for atom, count in moves.terms]:
        case [(Symbol(kind="block"), step)] if left is not None and left % room == 0 and step > 0:
            return f"{text} (at most {-(-left // step)} blocks for {extent})"
        case _:
            return text


def _least(n: Number) -> list[Number]:
    """The parts of a minimum."""
    atom = next((a for a, _ in n.terms), None)
    return [*atom.parts] if isinstance(atom, Extreme) and atom.is_least and n == of(atom) else [n]


def generalised(made: Specialised) -> Generalised:
    """The program with as many sizes as parameters as the kernel allows."""
    axes, sizes = _open_sizes(made.tracing)
    subsets = chain.from_iterable(combinations(axes, n) for n in range(len(axes), 0, -1))
    for names in islice(subsets, _TRIED):
        chosen = {name: axes[name] for name in names}
        try:
            found = _named(made.tracing, chosen).program()
        except PtoError:  # the kernel needs one of the sizes as a number
            continue
        findings = verify(found.module, profile(made.tracing.profile))
        if not any(each.severity == "error" for each in findings):
            return Generalised(found, chosen, {sizes[n]: axes[n] for n in axes if n not in chosen})
    return Generalised(made, {}, {sizes[n]: axes[n] for n in axes})


_TRIED = 24  # sets of sizes: all of them, all but one, ..


def known_call(made: Specialised, args: Sequence[object]) -> KnownCall:
    """The numbers of a call, and its arrays that share memory. `args`: the program's arguments."""
    params = parameters(*entry_functions(made.module, None))
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
    given = completed(kernel, {})
    needed = (p.name for p in kernel.parameters if p.kind == "array")
    return kernel_values(kernel, given, 0) if all(name in given for name in needed) else None


def prove(
    made: Specialised,
    args: Sequence[object] = (),
    *,
    blocks: Blocks | None = None,
    assume: Sequence[str] = (),
    given: Mapping[str, int] | None = None,
    general: Generalised | None = None,
) -> Proofs:
    """Each answer for every size if it is proved there, else for the numbers of the call. If the
    call has a grid, no answer is proved that does not hold for the call on it. `args`: of the
    program; without them numbers and memory of the call are not known."""
    call = known_call(made, args)
    legal_target(made.module, profile=made.tracing.profile)
    general = general or generalised(made)
    stated, of_trace = given or {}, {**_open_sizes(made.tracing)[1], **call.numbers}
    numbers = {**stated, **of_trace}

    def answers(program: Specialised, assume: Sequence[str], given: Mapping[str, int]) -> Proofs:
        module, name = program.module, made.tracing.profile
        functions, arrays = entry_functions(module, None), dict(_sizes(program.tracing))
        some = [f"{size} >= 1" for size in program.tracing.sizes if size not in given]
        found = prove_module(
            module,
            functions,
            profile=name,
            given=given,
            blocks=blocks,
            assume=[*some, *assume],
            arrays=arrays,
            call=replace(call, numbers=numbers),
        )
        return Proofs((name, _told(a, some)) for name, a in found)

    found = answers(general.made, [*general.limits, *assume], stated)
    known = [f"{name} == {n}" for name, n in stated.items()]
    known += [] if blocks is None else [f"blocks == {prod(extents_of(blocks))}"]
    whole = general.whole_tiles([*known, *general.limits, *assume], numbers)
    found = Proofs(
        (name, _with(a, [*general.assumes, *whole * (a.question == "bounds")])) for name, a in found
    )
    is_launch = blocks is not None and _keeps([*assume, *known], numbers, blocks)
    is_open = any(a.verdict != "proved" for _, a in found)
    if not (is_launch or (is_open and all(numbers[n] == v for n, v in stated.items()))):
        return found
    own = [text for text in assume if not any(name in text for name in general.axes)]
    exact = {(name, a.question): a for name, a in answers(made, own, numbers)}
    shapes = "; ".join([*_shapes(made.tracing), *(f"{n} = {v}" for n, v in call.numbers.items())])

    # windows of whole tiles are assumed to be inside: the launch may have others
    refuting = {"unknown", "refuted"} if whole else {"refuted"}

    def chosen(every: Answer, of_call: Answer) -> Answer:
        against = refuting if every.question == "bounds" else {"refuted"}
        if is_launch and of_call.verdict in against:
            return _with(of_call, [shapes])
        return _better(every, of_call, shapes)

    return Proofs((name, chosen(a, exact[name, a.question])) for name, a in found)


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
    own = [text for text in answer.assumes if text not in some]
    return replace(answer, assumes=(*own, *["arrays are not empty"] * bool(some)))


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
        {name: each for name, each in axes.items() if name not in taken},
        {name: size for size, name in names.items()},
    )


def _is_open(param: Parameter, axis: int) -> bool:
    return param.sizes is None or param.sizes[axis] is None


def _named(tracing: Tracing, axes: Mapping[str, Sequence[Axis]]) -> Tracing:
    names = {axis: name for name, each in axes.items() for axis in each}
    shapes = [
        (tuple(names.get((param.name, n), size) for n, size in enumerate(sizes)), kind)
        for param, (sizes, kind) in _arrays(tracing)
    ]
    return replace(tracing, shapes=shapes)
