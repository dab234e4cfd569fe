"""The example call in a kernel's docstring, in the form of `doctest`:

    >>> softmax[7](np.zeros((100, 128), np.float32), np.zeros((100, 128), np.float32))

Commands take its arguments where none are given, and an editor checks and times the kernel with it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from doctest import DocTestParser
from typing import TYPE_CHECKING

from pto.core.errors import Loc, fail
from pto.lang.call.source import definition_of
from pto.lang.parameter import Parameter, shaped
from pto.run.launch.call import Blocks

if TYPE_CHECKING:
    from pto.lang.kernel import Kernel


@dataclass(frozen=True, slots=True)
class DocstringExample:
    """A grid, and one value for each parameter."""

    blocks: Blocks
    values: list[object]


def example_of(kernel: Kernel[...]) -> DocstringExample | None:
    """The first call of a kernel in its docstring: `k(x)`, `k[7](x)`, `k[7].time((16, 64))`.

    Lines before it are executed, the call itself is not; a shape means an array of zeros.
    """
    function = kernel.function
    names, file = dict(function.__globals__), function.__code__.co_filename
    first = _first_line(function)
    try:
        parts = DocTestParser().get_examples(function.__doc__ or "")
        trees = [ast.parse(traced.source) for traced in parts]
    except (SyntaxError, ValueError) as error:
        message = f"the example of {kernel.name} is not Python: {getattr(error, 'msg', error)}"
        raise fail("PTO-U281", message, loc=Loc(file, first)) from None
    for part, tree in zip(parts, trees, strict=True):
        ast.increment_lineno(tree, first + part.lineno - 1)
        example = _call(tree, function.__name__)
        if example is None:
            exec(compile(tree, file, "exec"), names)
            continue
        call, grid = example
        call.func = ast.copy_location(ast.Name("__pto_given__", ast.Load()), call)
        names["__pto_given__"] = lambda *args, **named: (args, named)
        args, named = eval(compile(ast.Expression(call), file, "eval"), names)
        blocks = named.pop("blocks", 1)  # of `k.time(x, blocks=7)`
        if grid is not None:
            blocks = eval(compile(ast.Expression(grid), file, "eval"), names)
        mine = {p.name for p in kernel.parameters}
        values = kernel.values(args, {n: v for n, v in named.items() if n in mine})
        filled = map(_filled, kernel.parameters, values)
        return DocstringExample(blocks, list(filled))
    return None


def _first_line(function: Callable[..., object]) -> int:
    """The line where the docstring begins."""
    code = function.__code__
    definition = definition_of(code, function.__globals__)
    body = definition[0].body if definition else None
    return body[0].lineno if isinstance(body, list) else code.co_firstlineno


def _call(tree: ast.Module, name: str) -> tuple[ast.Call, ast.expr | None] | None:
    """The call of a kernel that a line consists of, and its grid; None if it is another line."""
    value = getattr(tree.body[-1], "value", None) if tree.body else None
    if not isinstance(value, ast.Call):
        return None
    called = value.func.value if isinstance(value.func, ast.Attribute) else value.func
    grid = called.slice if isinstance(called, ast.Subscript) else None
    called = called.value if isinstance(called, ast.Subscript) else called
    return (value, grid) if isinstance(called, ast.Name) and called.id == name else None


def _filled(param: Parameter, value: object) -> object:
    array = shaped(param, value)
    if array is not value and hasattr(array, "fill"):
        array.fill(0)  # pyright: ignore[reportAttributeAccessIssue]
    return array
