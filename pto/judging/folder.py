"""A task as a folder, in the form of cann-bench: `golden.py` on torch, `cases.csv`, `proto.yaml`.

`golden.py` may have, beside the golden function, an exact one (`NAME_oracle`), one in the element
type (`NAME_bench`) and `get_input`, which makes valid inputs of drawn ones. Sizes of outputs are
those that the golden function gives. Baselines come from `metadata/CHIP.json` above the folder.
"""

from __future__ import annotations

import csv
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, dtype, encode
from pto.core.errors import PtoError, fail
from pto.judging.precision import Precision, wrong_task
from pto.judging.task import Argument, Case, Draw, Shapes, code_of_task
from pto.lang.file import executed

Array = npt.NDArray[Any]
_TYPES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "bool": "u8",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
}
_SCHEMA = re.compile(r"schema:\s*(\w+)\s*\((.*?)\)\s*->\s*(.*?)(?=\n\s{0,2}\w+:|\Z)", re.DOTALL)
_TENSOR = re.compile(r"Tensor(\[\])?\??\s+(\w+)")
_DEFAULT = re.compile(r"(int|float|bool|str)\??\s+(\w+)\s*=\s*([^,()]+)")
_THRESHOLDS = re.compile(r"precision_thresholds:\n((?:[ \t]+\w+:[ \t]*[-+.\deE]+[^\n]*\n?)+)")
_THRESHOLD = re.compile(r"(\w+):[ \t]*([-+.\deE]+)")
_LARGE = 256  # sizes up to it are not scaled down
_STEP = 128
_SHAPE_SEED = 7  # of the inputs with which the sizes of outputs are found


@dataclass(frozen=True, slots=True)
class _Input:
    """One tensor of a case; an input that is a list of tensors has several."""

    name: str
    home: str  # the parameter of the golden function
    index: int | None  # in its list
    shape: tuple[int, ...]
    kind: str  # as torch names it
    range: Any


def read_folder(path: Path) -> FolderTask:
    """The task of a folder."""
    try:
        torch = import_module("torch")
    except ModuleNotFoundError:
        message = f"{path} is a folder with a golden on torch, which is not installed"
        raise fail(
            "PTO-U350", message, help="pip install torch, or write a task as a file"
        ) from None
    texts: dict[str, str] = {}
    for name in ("golden.py", "cases.csv", "proto.yaml"):
        if not (path / name).is_file():
            raise wrong_task(path.name, f"the folder has no {name}")
        texts[name] = (path / name).read_text(encoding="utf-8-sig")
    schema = _SCHEMA.search(re.sub(r"\n\s{4,}", " ", texts["proto.yaml"]))
    if schema is None:
        raise wrong_task(path.name, "proto.yaml has no schema")
    module = executed(path / "golden.py")
    if not callable(getattr(module, schema[1], None)):
        raise wrong_task(path.name, f"golden.py has no {schema[1]}")
    thresholds = _THRESHOLDS.search(texts["proto.yaml"])
    levels = _THRESHOLD.findall(re.sub(r"#.*", "", thresholds[1])) if thresholds else []
    return FolderTask(
        name=schema[1],
        path=path,
        cases=tuple(
            _cases(path.name, texts["cases.csv"], [n for _, n in _TENSOR.findall(schema[2])])
        ),
        precision=Precision(means={_TYPES.get(str(n), str(n)): float(v) for n, v in levels}),
        outputs=tuple(_TENSOR.findall(schema[3])),
        torch=torch,
        module=module,
        defaults={n: _plain(text) for _, n, text in _DEFAULT.findall(schema[2])},
    )


def _plain(text: str) -> Any:
    word = text.strip().strip("\"'")
    constants = {"true": True, "false": False, "none": None}
    try:
        return constants[word.lower()] if word.lower() in constants else json.loads(word)
    except ValueError:
        return word


def _cases(task: str, text: str, names: Sequence[str]) -> Iterator[Case]:
    """The cases of a table: tensors, and attributes."""
    for row in csv.DictReader(text.splitlines()):
        try:
            shapes, kinds = json.loads(row["input_shape"]), json.loads(row["dtype"])
            ranges = json.loads(row["value_range"] or "null")
            attrs = json.loads(row["attrs"] or "{}")
            tensors = tuple(_inputs(names, shapes, kinds, ranges))
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise wrong_task(task, f"case {row.get('case_id')}: {error!r}") from None
        yield Case(f"case {row['case_id']}", {"tensors": tensors, **_numbers(attrs)})


def _numbers(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes; numbers that are written as text are numbers."""
    number = re.compile(r"[-+]?(\d+(\.\d*)?([eE][-+]?\d+)?|inf|nan)")
    numbers = dict(attrs)
    for name, value in numbers.items():
        if isinstance(value, str) and number.fullmatch(value):
            numbers[name] = float(value)
    return numbers


def _inputs(names: Sequence[str], shapes: list[Any], kinds: Any, ranges: Any) -> Iterator[_Input]:
    kinds = kinds if isinstance(kinds, list) else [kinds]
    one_range = not ranges or not isinstance(ranges[0], list)
    for n, (name, shape) in enumerate(zip(names, shapes, strict=False)):
        if shape is None:
            continue
        kind = kinds[min(n, len(kinds) - 1)]
        limits_of = ranges if one_range else ranges[min(n, len(ranges) - 1)]
        if shape and isinstance(shape[0], list):
            for i, dimensions in enumerate(shape):
                part = kind[min(i, len(kind) - 1)] if isinstance(kind, list) else kind
                nested = limits_of and isinstance(limits_of[0], list)
                limits = limits_of[min(i, len(limits_of) - 1)] if nested else limits_of
                yield _Input(f"{name}_{i}", name, i, tuple(dimensions), part, limits)
        else:
            kind = kind[0] if isinstance(kind, list) else kind
            yield _Input(name, name, None, tuple(shape), kind, limits_of)


@dataclass(slots=True)
class FolderTask:
    """The task of a folder."""

    name: str
    path: Path
    cases: tuple[Case, ...]
    precision: Precision
    outputs: tuple[tuple[str, str], ...]  # whether it is a list, and its name
    torch: Any
    module: ModuleType
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    device: str | None = None
    _known: dict[str, Shapes] = field(default_factory=dict[str, Shapes])

    def on(self, device: str) -> FolderTask:
        """The task with the measured baselines and bounds of a chip."""
        for folder in self.path.resolve().parents:
            table = folder / "metadata" / f"{device}.json"
            if table.is_file():
                level, name = self.path.resolve().parent.name, self.path.resolve().name
                rows = json.loads(table.read_text(encoding="utf-8")).get(level, {}).get(name, {})
                return replace(self, cases=tuple(_anchored(c, rows) for c in self.cases))
        return self

    # ---- the parts of a case

    def arguments(self, case: Case) -> Sequence[Argument]:
        """The arrays of a case: tensors that it has, then outputs."""
        inputs = {tensor.name for tensor in _tensors(case)}
        return [Argument(n, "in" if n in inputs else "out") for n in self.shapes(case)]

    def numbers(self, case: Case) -> dict[str, Any]:
        """The attributes of a case."""
        return {**self.defaults, **{n: v for n, v in case.values.items() if n != "tensors"}}

    def shapes(self, case: Case) -> Shapes:
        """Shapes of the tensors, and of the outputs of the golden function."""
        if case.name not in self._known:
            shapes = {t.name: (t.shape, dtype(_TYPES[t.kind])) for t in _tensors(case)}
            for name, tensor in self._outputs_of(case).items():
                kind = _TYPES[str(tensor.dtype).removeprefix("torch.")]
                shapes[name] = tuple(tensor.shape), dtype(kind)
            self._known[case.name] = shapes
        return self._known[case.name]

    def _outputs_of(self, case: Case) -> dict[str, Any]:
        """Outputs that have the right shapes: without values where the golden function allows."""
        meta = {
            t.name: self.torch.empty(t.shape, dtype=getattr(self.torch, t.kind), device="meta")
            for t in _tensors(case)
        }
        try:
            return self._named(self._golden()(**self._given(case, meta)))
        except Exception:  # it looks at values
            drawn = self._drawn(case, np.random.default_rng(_SHAPE_SEED))
            return self._called(self._golden(), case, drawn)

    def _golden(self, ending: str = "") -> Callable[..., Any]:
        function = getattr(self.module, f"{self.name}{ending}", None)
        return function or getattr(self.module, self.name)

    def _given(self, case: Case, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the golden function, by name."""
        arguments: dict[str, Any] = self.numbers(case)
        for t in _tensors(case):
            if t.index is None:
                arguments[t.home] = tensors[t.name]
            else:
                arguments.setdefault(t.home, []).append(tensors[t.name])
        taken = inspect.signature(self._golden()).parameters
        missing = {n: None for n, p in taken.items() if p.default is p.empty and n not in arguments}
        return {**missing, **{n: v for n, v in arguments.items() if n in taken}}

    def _called(
        self, function: Callable[..., Any], case: Case, tensors: Mapping[str, Any]
    ) -> dict[str, Any]:
        with code_of_task(), self.torch.no_grad():
            return self._named(function(**self._given(case, tensors)))

    def _named(self, result: Any) -> dict[str, Any]:
        """Outputs by name; the tensors of a list have numbers."""
        if len(self.outputs) == 1:
            result = (result,) if not (isinstance(result, tuple) and len(result) == 1) else result
        named: dict[str, Any] = {}
        for (is_list, name), value in zip(self.outputs, result, strict=False):
            if isinstance(value, list | tuple) and is_list:
                named |= {f"{name}_{n}": part for n, part in enumerate(value)}
            elif value is not None:
                named[name] = value
        return named

    # ---- values

    def _drawn(self, case: Case, random: Draw) -> dict[str, Any]:
        """Tensors with drawn values, made valid by `get_input`."""
        drawn = {t.name: self._tensor(_items(t, random), t.kind) for t in _tensors(case)}
        make = getattr(self.module, "get_input", None)
        if make is None:
            return drawn
        arguments = self._given(case, drawn)
        taken = inspect.signature(make).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            arguments = {n: v for n, v in arguments.items() if n in taken}
        self.torch.manual_seed(int(random.integers(1 << 31)))
        with code_of_task():
            valid = make(**arguments)
        return self._placed(
            case, drawn, list(valid) if isinstance(valid, list | tuple) else [valid]
        )

    def _placed(self, case: Case, drawn: dict[str, Any], valid: list[Any]) -> dict[str, Any]:
        """The tensors that `get_input` returned, in the order of the golden function."""
        taken = inspect.signature(self._golden()).parameters
        homes = sorted({t.home for t in _tensors(case)}, key=list(taken).index)
        every = [n for n in taken if n in homes] if len(valid) == len(homes) else list(taken)
        for home, value in zip(every, valid, strict=False):
            for t in _tensors(case):
                if t.home == home and value is not None:
                    drawn[t.name] = value if t.index is None else value[t.index]
        return drawn

    def _tensor(self, items: Array, kind: str) -> Any:
        integer = np.dtype(f"i{items.itemsize}")
        tensor = self.torch.from_numpy(np.ascontiguousarray(items).view(integer).copy())
        return tensor.view(getattr(self.torch, kind))

    def inputs(self, case: Case, random: Draw) -> dict[str, Array]:
        """Values of the tensors."""
        shapes, drawn = self.shapes(case), self._drawn(case, random)
        return {t.name: _numpy(drawn[t.name], shapes[t.name][1]) for t in _tensors(case)}

    def expected(
        self, case: Case, inputs: Mapping[str, Array], *, same: bool = False
    ) -> dict[str, Array]:
        """Values of the golden function in float64; `same`: in the element types."""
        tensors = {t.name: self._tensor(inputs[t.name], t.kind) for t in _tensors(case)}
        if not same:
            tensors = {n: t.double() if t.is_floating_point() else t for n, t in tensors.items()}
        function = self._golden("_bench" if same else "_oracle")
        values_by_name = {n: _values(t) for n, t in self._called(function, case, tensors).items()}
        shapes = self.shapes(case)
        for name, values in values_by_name.items():
            if name not in shapes or values.shape != shapes[name][0]:
                raise wrong_task(self.name, f"the size of {name} depends on values in {case.name}")
        return values_by_name

    def floor(self, case: Case) -> tuple[float, float]:
        """The bytes of all tensors; the operations are not known."""
        return float(sum(prod(s) * k.itemsize for s, k in self.shapes(case).values())), 0.0

    # ---- cases

    def hidden(self, random: Draw) -> list[Case]:
        """None: the sizes of a folder are what its golden function takes. All values are drawn."""
        return []

    def scaled(self, case: Case, most: int) -> Case:
        """The case with large sizes made smaller, if the golden function takes them."""
        if sum(prod(t.shape) for t in _tensors(case)) <= most:
            return case
        sizes = {n for t in _tensors(case) for n in t.shape}
        tensors = tuple(_smaller(t, sizes) for t in _tensors(case))
        small = replace(
            case,
            name=f"{case.name}, scaled down",
            values={**case.values, "tensors": tensors},
            full=case,
        )
        try:
            inputs = self.inputs(small, np.random.default_rng(_SHAPE_SEED))
            self.expected(small, inputs)
        except PtoError:
            return case
        return small


def _tensors(case: Case) -> Sequence[_Input]:
    return case.values["tensors"]


def _scaled(size: int) -> int:
    """A smaller size with the same rest modulo 128; larger sizes stay larger."""
    if size <= _LARGE:
        return size
    return _STEP * (size.bit_length() - 8) + size % _STEP


def _smaller(tensor: _Input, sizes: set[int]) -> _Input:
    """A smaller tensor; a range that ends before a size, as that of an index, ends before it."""
    limits = tensor.range
    if "int" in tensor.kind and isinstance(limits, list) and limits[-1] + 1 in sizes:
        limits = [*limits[:-1], _scaled(limits[-1] + 1) - 1]
    return replace(tensor, shape=tuple(map(_scaled, tensor.shape)), range=limits)


def _anchored(case: Case, rows: Mapping[str, Any]) -> Case:
    row = rows.get(case.name.removeprefix("case "), {})
    anchors = {"baseline_us": row.get("baseline_perf_us"), "bound_us": row.get("t_hw_us")}
    return replace(case, anchors={n: float(v) for n, v in anchors.items() if v})


def _items(tensor: _Input, random: Draw) -> Array:
    """Drawn values in the range of a tensor."""
    kind = dtype(_TYPES[tensor.kind])
    low, high = _limits(tensor.range, kind)
    if tensor.kind == "bool":
        low, high = min(1, max(0, int(low))), min(1, max(0, int(high)))
    if not kind.is_float:
        values = random.integers(int(low), int(high), tensor.shape, np.int64, endpoint=True)
    elif np.isfinite(low) and np.isfinite(high):
        low, high = max(low, float(kind.min)), min(high, float(kind.max))
        values = low + random.random(tensor.shape) * (high - low)
    else:
        values = random.uniform(-1, 1, tensor.shape)
        special = [np.nan] if np.isnan(low) and np.isnan(high) else [-np.inf, np.inf]
        share = 0.5 if len(special) == 1 else 0.1
        mask = random.random(tensor.shape) < share
        values = np.where(mask, random.choice(special, tensor.shape), values)
    return np.ascontiguousarray(encode(kind, values)).view(kind.numpy)


def _limits(limits: Any, kind: DType) -> tuple[float, float]:
    if limits is None:
        return (0.0, 1.0) if kind.is_float else (0.0, 100.0)
    pair = limits if isinstance(limits, list) else [limits]
    return float(pair[0]), float(pair[-1])


def _values(tensor: Any) -> Array:
    """A tensor as float64 or int64."""
    return (tensor.double() if tensor.is_floating_point() else tensor.long()).numpy()


def _numpy(tensor: Any, kind: DType) -> Array:
    """The bytes of a tensor as an array of an element type."""
    bits = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}[tensor.element_size()]
    torch = import_module("torch")
    bits_view = tensor.contiguous().view(getattr(torch, bits))
    return bits_view.numpy().copy().view(kind.numpy).reshape(tuple(tensor.shape))
