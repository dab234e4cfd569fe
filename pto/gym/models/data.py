"""The arguments of one launch of a model's kernel: scalars, arrays, and which of them it writes.

Data comes from the kernel's own script if it has one, else it is generated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, encode
from pto.core.errors import Diagnostic, Note, PtoError
from pto.gym.models.rules import Rules
from pto.gym.scripts import Scripts
from pto.ir.graph import Operation, Value
from pto.isa.handle.view import MAKE_TENSOR_VIEW
from pto.isa.row import types as t
from pto.plan.calls import SUBBLOCK
from pto.prove.closed import BLOCK, BLOCKS
from pto.run.launch.arguments import LaunchParameter, parameters

Array = npt.NDArray[Any]
_LEAST = 1024  # elements if no view states the number
_DRAWN = 1 << 20  # random numbers at most; a longer array repeats them
_SEED = 19
_SUBBLOCKS = 2
# Values of a launch with one block, for kernels that take the grid as arguments.
_ONE_BLOCK = {BLOCK: 0, BLOCKS: 1}
_HOST_TYPES = {"f32": "float", "f16": "aclFloat16", "bf16": "bfloat16_t", "f64": "double"}


@dataclass(frozen=True, slots=True)
class Data:
    """The arguments of one launch, in the order of its parameters."""

    params: list[LaunchParameter]
    values: list[Any]
    outputs: dict[int, str]  # position of an array the kernel writes: upstream's name

    def copied(self) -> list[Any]:
        """Arguments with copies of the outputs, so that these stay unchanged."""
        return [v.copy() if n in self.outputs else v for n, v in enumerate(self.values)]


def prepare(
    functions: Sequence[Operation], rules: Rules, extent: int, *, exact: bool = True
) -> Data:
    """Scalars as upstream sets them, arrays of zeros as large as the views of the kernel.

    Unless a script needs them `exact`, arrays fill a page at least, as those of a chip do.
    """
    params_by_name = {f"v{n}": p for n, p in enumerate(parameters(*functions), 1)}
    extents = _extents(functions, extent)
    numbers = {
        p.name: _scalar(v, p, rules, extents) for v, p in params_by_name.items() if not p.is_array
    }
    params = parameters(*functions, numbers=numbers)
    values = [
        _zeros(p, rules.elements.get(v, 0 if exact else _LEAST)) if p.is_array else numbers[p.name]
        for v, p in zip(params_by_name, params, strict=True)
    ]
    written = _written(functions, params)
    if rules.outputs:
        written = {n for n, v in enumerate(params_by_name) if v in rules.outputs}
    return Data(params, values, {n: f"v{n + 1}" for n in sorted(written)})


def _scalar(name: str, p: LaunchParameter, rules: Rules, extents: Mapping[str, int]) -> Any:
    if p.dtype is not None and p.dtype.is_float:
        return 1.0
    usual = _ONE_BLOCK.get(p.name, rules.scalar)
    return rules.scalars.get(name, extents.get(p.name, usual))


def _extents(functions: Sequence[Operation], most: int) -> dict[str, int]:
    """The integer arguments that set the size of a view or a valid region: whole tiles."""
    extents: dict[str, int] = {}
    for op in (op for function in functions for op in function.walk()):
        sizes = op.group("shape") if op.row is MAKE_TENSOR_VIEW else []
        sizes += [*op.group("valid_row"), *op.group("valid_col")]
        for name in (name for value in sizes for name in arguments_of(value)):
            extents.setdefault(name, most)
        type_of_result = op.results[0].type if op.results else None
        for axis, group in enumerate(("valid_row", "valid_col")):
            for value in op.group(group) if isinstance(type_of_result, t.TileBuf) else ():
                if value.maker is None and isinstance(
                    type_of_result, t.TileBuf
                ):  # no more than there is
                    extents[value.name] = min(extents[value.name], type_of_result.tile.shape[axis])
    return {name: size for name, size in extents.items() if name not in _ONE_BLOCK}


def arguments_of(value: Value) -> set[str]:
    """Names of the arguments from which a number is computed."""
    if value.maker is None:
        return {value.name}
    return {name for operand in value.maker.operands for name in arguments_of(operand)}


def _zeros(p: LaunchParameter, least: int) -> Array:
    kind = p.dtype
    count = max(p.elements or 0, least) or _LEAST
    return np.zeros(count, np.uint8 if kind is None else kind.storage)


def _written(functions: Sequence[Operation], params: Sequence[LaunchParameter]) -> set[int]:
    """Positions of the arrays that an operation of the kernel writes to."""
    names = [p.name for p in params]
    numbers: set[int] = set()
    for function in functions:
        args = function.regions[0].block.args
        same = {a.name for a in args} <= set(names)
        for op in function.walk():
            for value in map(origin, op.given("out", "inout")):
                if value in args:
                    n = args.index(value)
                    numbers.add(names.index(value.name) if same else n)
    return {n for n in numbers if params[n].is_array}


def origin(value: Value) -> Value:
    """The argument from which a view or pointer is derived."""
    return value.origin(lambda op: isinstance(op.results[0].type, t.Ptr | t.View))


def draw(data: Data, drawn: dict[Any, Array]) -> None:
    """Random numbers for inputs; integers wider than a byte stay 0, since they may be indices.

    Arrays in `drawn`, of an earlier try, are reused.
    """
    for n, kind, array in _inputs(data):
        if kind.is_float or kind.itemsize == 1:
            key = n, kind, array.size
            if key not in drawn:
                count = min(array.size, _DRAWN) * kind.values_per_item
                rng = np.random.default_rng((_SEED, n))
                _repeat(array, encode(kind, _numbers(kind, count, rng)))
            data.values[n] = drawn.setdefault(key, array)


def choose(data: Data, integers: Sequence[int]) -> None:
    """Fill inputs of integers wider than a byte with these numbers, repeated."""
    for _, kind, array in _inputs(data):
        if not kind.is_float and kind.itemsize > 1 and any(integers):
            _repeat(array, np.resize(encode(kind, np.asarray(integers)), min(array.size, _DRAWN)))


def _repeat(array: Array, values: Array) -> None:
    for at in range(0, array.size, values.size):
        part = array[at : at + values.size]
        part[:] = values[: part.size]


def _inputs(data: Data) -> Iterator[tuple[int, DType, Array]]:
    for n, (p, array) in enumerate(zip(data.params, data.values, strict=True)):
        if p.dtype is not None and n not in data.outputs and isinstance(array, np.ndarray):
            yield n, p.dtype, array


def _numbers(kind: DType, count: int, rng: np.random.Generator) -> Array:
    if kind.is_float:
        return rng.random(count)
    return rng.integers(-7 * kind.is_signed, 8, count).astype(np.int64)


def generate(script: Path, data: Data, scripts: Scripts, work: Path) -> Mapping[int, Array]:
    """Let the kernel's script fill the arrays; returns its expected outputs, by position.

    A kernel with its sub-block as an argument has expected outputs for each sub-block.
    """
    subs = [n for n, p in enumerate(data.params) if p.name == SUBBLOCK]
    goldens: dict[int, Array] = {}
    for sub in range(_SUBBLOCKS if subs else 1):
        for n in subs:
            data.values[n] = sub
        for n, golden in _generated(script, data, scripts, work).items():
            unsigned = np.dtype(f"u{golden.dtype.itemsize}")
            is_written = golden.view(unsigned) != data.values[n].view(unsigned)
            goldens[n] = np.where(is_written, golden, goldens.get(n, golden))
    return goldens


def _generated(script: Path, data: Data, scripts: Scripts, work: Path) -> Mapping[int, Array]:
    (work / "main.cpp").write_text(_host(data), encoding="utf-8")
    listed = "".join(f"{name}\n" for name in data.outputs.values())
    (work / "outputs.txt").write_text(listed, encoding="utf-8")
    outcome = scripts.run(script, work)
    if outcome.code != 0:
        notes = tuple(Note(line) for line in outcome.output.strip().splitlines()[-4:])
        message = f"the generator {script} ended with code {outcome.code}"
        raise PtoError(Diagnostic("PTO-U065", message, notes=notes))
    for n, array in enumerate(data.values):
        if isinstance(array, np.ndarray):
            array[:] = _read(work / f"v{n + 1}.bin", array)
    golden = {n: work / f"golden_{name}.bin" for n, name in data.outputs.items()}
    return {n: _read(f, data.values[n]) for n, f in golden.items() if f.is_file()}


def _read(file: Path, like: Array) -> Array:
    if not file.is_file():
        return like
    raw = np.fromfile(file, np.uint8)
    if raw.size != like.nbytes:
        message = f"{file.name} holds {raw.size} bytes, the kernel takes {like.nbytes}"
        raise PtoError(Diagnostic("PTO-U065", message))
    return raw.view(like.dtype)


def _host(data: Data) -> str:
    """The lines of a host program from which scripts read sizes, types and scalars."""
    lines: list[str] = []
    for n, (p, value) in enumerate(zip(data.params, data.values, strict=True), 1):
        if isinstance(value, np.ndarray):
            lines += [
                f"size_t elemCount_v{n} = {value.size};",
                f"size_t fileSize_v{n} = elemCount_v{n} * sizeof({_host_type(p.dtype)});",
                f'ReadFile("./v{n}.bin", fileSize_v{n}, v{n}Host, fileSize_v{n});',
            ]
        else:
            lines.append(f"{_host_type(p.dtype)} v{n} = {value};")
    return "\n".join(lines) + "\n"


def _host_type(kind: DType | None) -> str:
    if kind is None:
        return "int32_t"
    if kind.is_float:
        return _HOST_TYPES.get(kind.name, "uint8_t")
    return f"{'' if kind.is_signed else 'u'}int{kind.itemsize * 8}_t"
