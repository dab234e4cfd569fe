"""A kernel as an operator of PyTorch, which `torch.compile` and `torch.export` accept.

The operator runs on CPU tensors, in their memory. Functions of the inputs allocate its results;
they also serve as its shape function (fake implementation).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from pto.core.optional import not_installed
from pto.lang.call.place import mistake
from pto.lang.kernel import Kernel
from pto.lang.parameter import Parameter
from pto.run.launch.call import Blocks

_SCHEMA = {bool: "bool", int: "int", float: "float", str: "str"}
Made = Callable[..., object]


def torch_op(
    kernel: Kernel[...],
    name: str,
    *,
    out: Mapping[str, Made],
    blocks: Blocks | Callable[..., Blocks] = 1,
    engine: str | None = None,
) -> Any:
    """An operator `namespace::name` from a kernel: `op(x)` returns the arrays that it writes.

    out     for each written parameter a function that makes its tensor from the inputs named by
            its parameters: `out={"y": lambda x: torch.empty_like(x)}`
    blocks  the grid, or a function of inputs: `blocks=lambda x: pto.cdiv(x.shape[0], 16)`
    engine  as for a run

    The result is that of `torch.library.custom_op`: gradients can be registered on it.
    """
    try:
        torch = import_module("torch")
    except ModuleNotFoundError:
        raise not_installed("an operator of PyTorch", "torch", "torch") from None
    _require_known(kernel, out)
    inputs = [p for p in kernel.parameters if p.name not in out]
    texts = {p.name: text for p in inputs if (text := _schema(kernel, p))}
    names = list(texts)
    makers = {n: (make, _wanted(make, names)) for n, make in out.items()}
    grid: Callable[..., Blocks] = blocks if callable(blocks) else lambda: blocks
    wanted_by_grid = _wanted(grid, names)
    declared = inspect.signature(kernel.function).parameters
    signature = inspect.Signature([declared[n] for n in names])

    def bound(args: Sequence[object], named: Mapping[str, object]) -> dict[str, Any]:
        arguments = signature.bind(*args, **named)
        arguments.apply_defaults()
        return arguments.arguments

    def made(*args: object, **named: object) -> Any:
        values = bound(args, named)
        results = tuple(make(*(values[n] for n in wanted)) for make, wanted in makers.values())
        return results[0] if len(results) == 1 else results

    def run(*args: object, **named: object) -> Any:
        values = bound(args, named)
        results = made(*args, **named)
        tensors = (results,) if len(out) == 1 else results
        chosen = grid(*(values[n] for n in wanted_by_grid))
        with torch.no_grad():
            plain = {n: _readable(value) for n, value in values.items()}
            kernel.run(
                blocks=chosen, engine=engine, **plain, **dict(zip(out, tensors, strict=True))
            )
        return results

    parameter_list = ", ".join(texts.values())
    results = ", ".join(["Tensor"] * len(out))
    schema = f"({parameter_list}) -> {results if len(out) == 1 else f'({results})'}"
    op = torch.library.custom_op(name, run, mutates_args=(), device_types="cpu", schema=schema)
    op.register_fake(made)
    return op


def _readable(value: Any) -> Any:
    """An input as a dense tensor: an expanded tensor has no memory for each element."""
    return value.detach().contiguous() if hasattr(value, "detach") else value


def _require_known(kernel: Kernel[...], out: Mapping[str, Made]) -> None:
    arrays = [p.name for p in kernel.parameters if p.kind == "array"]
    for name in out:
        if name not in arrays:
            raise mistake(
                "PTO-U210", f"{kernel.name} has no array {name}; it has {', '.join(arrays)}"
            )
    if not out:
        raise mistake(
            "PTO-U210",
            f"{kernel.name}: an operator gives something: name the arrays that it writes",
            help='out={"y": lambda x: torch.empty_like(x)}',
        )


def _schema(kernel: Kernel[...], p: Parameter) -> str:
    """A parameter in the syntax of a torch schema; empty for a constant without a torch type."""
    if p.kind == "array":
        return f"Tensor {p.name}"
    declared = inspect.signature(kernel.function).parameters[p.name]
    default = "" if declared.default is inspect.Parameter.empty else declared.default
    if p.dtype is not None:
        word = "float" if p.dtype.is_float else "int"
    else:
        hint = inspect.get_annotations(kernel.function, eval_str=True).get(p.name)
        word = _SCHEMA.get(hint if isinstance(hint, type) else type(default), "")
        if not word and default == "":
            raise mistake(
                "PTO-U210",
                f"{kernel.name}: an operator of torch takes numbers and words,"
                f" and {p.name} has no type",
                help=f"annotate it, as {p.name}: int, or give it a default",
            )
    if not word:
        return ""
    text = f'"{default}"' if isinstance(default, str) else default
    return f"{word} {p.name}" + ("" if default == "" else f"={text}")


def _wanted(function: Callable[..., object], names: list[str]) -> list[str]:
    """The inputs that a function needs, by the names of its parameters."""
    wanted = list(inspect.signature(function).parameters)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise mistake(
            "PTO-U210",
            f"there is no input {unknown[0]}: the operator has {', '.join(names)}",
            help="parameters of functions for out= and blocks= are named as those of the kernel",
        )
    return wanted
