"""A task: the arguments of an operator, its cases, and a reference that computes the right results.

A task is a Python file with `arguments`, `cases` and `reference`; docs/guide/judge.md describes
these and the optional names. The judge adds cases of its own with sizes and values that no file
contains.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import gcd, prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, decode, dtype, encode
from pto.core.errors import PtoError, nearest
from pto.judging.precision import Precision, TaskError, of_words, wrong_task
from pto.lang.arithmetic import computed, parsed
from pto.lang.file import executed, users_code

Array = npt.NDArray[Any]
Draw = np.random.Generator
_SPEC = re.compile(r"(?:(in|out|inout)\s+)?(\w+)\s*(?:\[([^\]]*)\])?")
_KNOWN = (
    *("arguments", "cases", "reference", "ranges", "sizes", "draw", "precision", "device"),
    *("nan", "work"),
)
_ANCHORS = ("baseline_us", "bound_us")  # members of a case that are no arguments
_SMALL = 300  # the largest size that the judge draws by default
_RANGE = (-2.0, 2.0)
_WHOLE_RANGE = (-100, 100)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: `f32[m, n]`, `out f32[m, 2 * n]`, or a number, `f32`."""

    name: str
    role: str = "in"  # out, inout
    kind: str = ""  # an element type, or a name that each case gives one
    sizes: tuple[str, ...] | None = ()  # None: a number

    @property
    def is_array(self) -> bool:
        return self.sizes is not None

    @property
    def is_written(self) -> bool:
        return self.role != "in"


@dataclass(frozen=True, slots=True)
class Case:
    """Sizes, types and numbers of one call, and the kind of values that are drawn for it."""

    name: str
    values: Mapping[str, Any]
    fill: str = "random"  # or extremes, nan
    is_declared: bool = True  # by the task; otherwise the judge has drawn it
    anchors: Mapping[str, float] = field(default_factory=dict[str, float])
    full: Case | None = None  # the case that this one is scaled down from


Shapes = dict[str, tuple[tuple[int, ...], DType]]


class Task(Protocol):
    """An operator: arguments, cases, reference; of a file, or of a folder (`folder.py`)."""

    @property
    def name(self) -> str: ...
    @property
    def cases(self) -> Sequence[Case]: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def device(self) -> str | None: ...

    def on(self, device: str) -> Task:
        """The task with the baselines of a chip."""
        ...

    def arguments(self, case: Case) -> Sequence[Argument]:
        """The arguments of a case."""
        ...

    def shapes(self, case: Case) -> Shapes:
        """The shape and element type of each array."""
        ...

    def numbers(self, case: Case) -> dict[str, Any]:
        """Sizes, attributes and numbers of a case."""
        ...

    def inputs(self, case: Case, random: Draw) -> dict[str, Array]:
        """Values of the arrays that the operator reads."""
        ...

    def expected(
        self, case: Case, inputs: Mapping[str, Array], *, same: bool = False
    ) -> dict[str, Array]:
        """The exact values of the outputs; `same`: computed in the element types."""
        ...

    def floor(self, case: Case) -> tuple[float, float]:
        """The bytes and operations that no kernel can do without."""
        ...

    def hidden(self, random: Draw) -> list[Case]:
        """Cases that the judge adds."""
        ...

    def scaled(self, case: Case, most: int) -> Case:
        """The case with at most so many elements, if it can be made smaller."""
        ...


@dataclass(frozen=True, slots=True)
class FileTask:
    """The task of a Python file."""

    name: str
    every: tuple[Argument, ...]  # argument
    cases: tuple[Case, ...]
    reference: Callable[..., Any]
    precision: Precision
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, Any])
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Any])
    draw: Callable[[Mapping[str, Any], Draw], Mapping[str, Any]] | None = None
    device: str | None = None
    has_nan: bool = True
    work: Callable[[Mapping[str, Any]], Mapping[str, float]] | None = None

    def on(self, device: str) -> FileTask:
        """The same task: its cases have their own baselines."""
        return self

    def arguments(self, case: Case) -> Sequence[Argument]:
        """The arguments of a case, which are those of all cases."""
        return self.every

    @property
    def _outputs(self) -> list[Argument]:
        return [a for a in self.every if a.is_array and a.is_written]

    # ---- the shapes and values of a case

    def shapes(self, case: Case) -> Shapes:
        """The shape and element type of each array."""
        shapes: Shapes = {}
        for a in self.every:
            if a.sizes is not None:
                shape = tuple(self._size(a, text, case) for text in a.sizes)
                shapes[a.name] = shape, self._kind(a, case)
        return shapes

    def numbers(self, case: Case) -> dict[str, Any]:
        """The members of a case: sizes, attributes and numbers."""
        return {n: v for n, v in case.values.items() if n not in _ANCHORS}

    def _kind(self, a: Argument, case: Case) -> DType:
        return dtype(str(case.values.get(a.kind, a.kind)))

    def _size(self, a: Argument, text: str, case: Case) -> int:
        try:
            size = computed(parsed(text), self.numbers(case))
        except ValueError as error:
            raise wrong_task(
                self.name, f"size `{text}` of {a.name} in {case.name}: {error}"
            ) from None
        if not isinstance(size, int) or size < 0:
            raise wrong_task(self.name, f"size `{text}` of {a.name} is {size} in {case.name}")
        return size

    def inputs(self, case: Case, random: Draw) -> dict[str, Array]:
        """The values of the arrays that the operator reads."""
        shapes = self.shapes(case)
        drawn = self._drawn(case, random) if case.fill == "random" or self.draw else {}
        arrays: dict[str, Array] = {}
        for a in self.every:
            if not a.is_array or a.role == "out":
                continue
            shape, kind = shapes[a.name]
            if a.name in drawn:
                arrays[a.name] = _items(kind, np.broadcast_to(drawn[a.name], shape))
            else:
                arrays[a.name] = self._random(a, shape, kind, case.fill, random)
        return arrays

    def _drawn(self, case: Case, random: Draw) -> Mapping[str, Any]:
        if self.draw is None:
            return {}
        with code_of_task():
            return self.draw(self.numbers(case), random)

    def _random(
        self, a: Argument, shape: tuple[int, ...], kind: DType, fill: str, random: Draw
    ) -> Array:
        low, high = self.ranges.get(a.name, _RANGE if kind.is_float else _WHOLE_RANGE)
        if not kind.is_float:
            low, high = max(int(low), int(kind.min)), min(int(high), int(kind.max))
            return _items(kind, random.integers(low, high, shape, np.int64, endpoint=True))
        values = random.uniform(low, high, shape)
        if fill == "extremes":
            ends = np.array([low, high, min(max(0.0, low), high), 0.5 * (low + high)])
            values = np.where(random.random(shape) < 0.5, random.choice(ends, shape), values)
        if fill == "nan" and values.size:
            values.reshape(-1)[random.integers(values.size)] = np.nan
        return _items(kind, values)

    def expected(
        self, case: Case, inputs: Mapping[str, Array], *, same: bool = False
    ) -> dict[str, Array]:
        """The exact values of the outputs, by name; `same`: computed in the element types."""
        shapes = self.shapes(case)
        arguments: dict[str, Any] = self.numbers(case)
        for name, items in inputs.items():
            arguments[name] = items.copy() if same else decode(shapes[name][1], items)
        taken = inspect.signature(self.reference).parameters
        with code_of_task():
            result = self.reference(**{n: arguments[n] for n in taken if n in arguments})
        names = [a.name for a in self._outputs]
        if not isinstance(result, dict):
            every = result if isinstance(result, tuple) else (result,)
            if len(every) != len(names):
                message = f"reference returns {len(every)} arrays, the task has {', '.join(names)}"
                raise wrong_task(self.name, message)
            result = dict(zip(names, every, strict=True))
        results: dict[str, Array] = {}
        for name in names:
            values = np.asarray(result[name])
            if values.shape != shapes[name][0]:
                message = f"reference gives {name} the shape {values.shape}, not {shapes[name][0]}"
                raise wrong_task(self.name, message)
            results[name] = values
        return results

    def floor(self, case: Case) -> tuple[float, float]:
        """The bytes and operations that no kernel can do without."""
        moved = float(sum(prod(s) * k.itemsize for s, k in self.shapes(case).values()))
        with code_of_task():
            work = {} if self.work is None else self.work(self.numbers(case))
        return float(work.get("bytes", moved)), float(work.get("flops", 0.0))

    # ---- cases of the judge

    def hidden(self, random: Draw) -> list[Case]:
        """Cases with drawn sizes: odd ones, the smallest, extreme values, NaN."""
        cases: list[Case] = []
        wanted = ["odd sizes", "other sizes", "the smallest sizes", "extremes"]
        floats = any(self._is_float(a) for a in self.every if a.role != "out")
        wanted += ["nan"] if self.has_nan and floats else []
        for number, name in enumerate(wanted):
            base = self.cases[int(random.integers(len(self.cases)))]
            sizes = {
                n: least if name == "the smallest sizes" else _drawn_size(least, most, step, random)
                for n, (least, most, step) in self._varying().items()
                if n in base.values
            }
            values = {**base.values, **sizes}
            listed = ", ".join(f"{n}={v}" for n, v in sizes.items())
            fill = name if name in ("extremes", "nan") else "random"
            title = f"hidden {number + 1}: {name}" + (f" ({listed})" if listed else "")
            cases.append(Case(title, values, fill, is_declared=False))
        return cases

    def _is_float(self, a: Argument) -> bool:
        return a.is_array and self._kind(a, self.cases[0]).is_float

    def _varying(self) -> dict[str, tuple[int, int, int]]:
        """Least, greatest and step of each size that may vary.

        Without `sizes` those vary that differ between cases, in steps of the power of two that
        divides all of them.
        """
        ranges: dict[str, tuple[int, int, int]] = {}
        for name in self._size_names():
            values = [int(c.values[name]) for c in self.cases if name in c.values]
            if name in self.sizes:
                values = [int(n) for n in self.sizes[name]]
                step = 1 if len(values) == 2 else gcd(*(n - values[0] for n in values[1:]), 0) or 1
            else:
                step = gcd(*values) & -gcd(*values)
            if len(set(values)) > 1:
                ranges[name] = min(values), max(values), step
        return ranges

    def _size_names(self) -> list[str]:
        words = (
            w for a in self.every for s in a.sizes or () for w in re.findall(r"[a-zA-Z_]\w*", s)
        )
        values = self.cases[0].values
        return [n for n in dict.fromkeys(words) if isinstance(values.get(n), int)]

    def scaled(self, case: Case, most: int) -> Case:
        """The case with sizes that vary halved until its arrays have at most `most` elements."""
        varying, values = self._varying(), dict(case.values)

        def elements() -> int:
            return sum(prod(s) for s, _ in self.shapes(replace(case, values=values)).values())

        while elements() > most:
            left = [(values[n], n) for n, (least, _, _) in varying.items() if values[n] > least]
            if not left:
                return case
            size, name = max(left)
            least, _, step = varying[name]
            values[name] = max(least, size // 2 // step * step)
            if values[name] == size:
                return case
        if values == dict(case.values):
            return case
        return replace(case, name=f"{case.name}, scaled down", values=values, full=case)


def _drawn_size(least: int, most: int, step: int, random: Draw) -> int:
    """A size between two, odd where it may be, and small enough to run in no time."""
    high = min(most, max(least, _SMALL))
    size = least + int(random.integers(max(1, (high - least) // step + 1))) * step
    return size + 1 if step == 1 and size % 2 == 0 and size + 1 <= high else size


def _items(kind: DType, values: Array) -> Array:
    return np.ascontiguousarray(encode(kind, values)).view(kind.numpy)


@contextmanager
def code_of_task() -> Generator[None]:
    """A context for functions of a task: what they raise is a mistake of the task."""
    try:
        with users_code(), np.errstate(all="ignore"):
            yield
    except PtoError as error:
        raise TaskError(*error.diagnostics) from None


# ---- from a file


def read_file(path: Path) -> FileTask:
    """The task of a Python file."""
    module = executed(path)
    names = {n: v for n, v in vars(module).items() if not n.startswith("_")}
    name = str(names.get("name", path.stem.removesuffix("_task")))
    for needed in ("arguments", "cases", "reference"):
        if needed not in names:
            close = next((n for n in names if nearest(needed, [n])), None)
            other = f"; it has `{close}`" if close else ""
            raise wrong_task(name, f"it has no `{needed}`{other}")
    arguments = tuple(_argument(name, n, text) for n, text in names["arguments"].items())
    cases = tuple(_case(name, n, dict(values)) for n, values in enumerate(names["cases"], 1))
    if not cases or not any(a.is_array and a.is_written for a in arguments):
        raise wrong_task(name, "it needs a case and an output, such as 'out f32[m, n]'")
    fields_of_task = {n: names[n] for n in _KNOWN if n in names and n not in ("arguments", "cases")}
    fields_of_task["precision"] = of_words(name, fields_of_task.get("precision"))
    fields_of_task["has_nan"] = fields_of_task.pop("nan", True)
    task = FileTask(name=name, every=arguments, cases=cases, **fields_of_task)
    for case in task.cases:
        task.shapes(case)
    return task


def _argument(task: str, name: str, text: object) -> Argument:
    match = _SPEC.fullmatch(str(text).strip())
    if match is None:
        raise wrong_task(task, f"argument {name} is {text!r}; write 'f32[m, n]' or 'out f32[m, n]'")
    role, kind, sizes = match.groups()
    parts = None if sizes is None else tuple(s.strip() for s in sizes.split(",") if s.strip())
    return Argument(name, role or "in", kind, parts)


def _case(task: str, number: int, values: dict[str, Any]) -> Case:
    anchors = {n: float(values.pop(n)) for n in _ANCHORS if n in values}
    listed = ", ".join(f"{n}={v}" for n, v in values.items())
    name = str(values.pop("name", f"case {number}" + (f" ({listed})" if listed else "")))
    return Case(name, values, anchors=anchors)
