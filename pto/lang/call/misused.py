"""Errors that Python raises in a kernel, as findings: a method that tiles do not have, an operator
that no instruction is, a call with too few arguments. The help is found among the public names."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Mapping
from traceback import walk_tb
from types import FrameType, ModuleType

from pto.core.dtypes import DType
from pto.core.errors import Diagnostic, PtoError, nearest
from pto.lang.call.place import KernelError, is_own, is_users, raised_at, user_step
from pto.lang.call.signature import instructions
from pto.lang.debug import FormattedText
from pto.lang.names import PUBLIC, RENAMED, find, known
from pto.lang.values.operators import Comparison
from pto.lang.values.scalars import Scalar
from pto.lang.values.tiles import Tile
from pto.lang.values.views import Global, View

# Methods of NumPy and torch arrays, and the equivalent here.
_METHODS = {
    "transpose": "t.T",
    "size": "t.shape, and t.valid for the part that holds data",
    "var": "d = t - t.mean(axis=1); (d * d).mean(axis=1)",
    "copy": "u = pto.zeros_like(t); u[:] = t",
    "item": "isa.tgetval(t, 0)",
    "fill": "t[:] = 0.0",
    "stack": "pto.concatenate([a, b], axis=0); axis=1 puts them side by side",
    "flatten": "t.reshape(1, -1)",
    "broadcast_to": "operators broadcast rows and columns: t * row; pto.zeros_like(t) + row",
    "atomic_add": 'pto.store(y, t, atomic="add")',
    "program_id": "pto.block_idx(0)",
    "num_programs": "pto.block_num(0)",
    "constexpr": "a parameter without pto.Global or pto.Scalar is a constant: rows: int = 16",
    "jit": "@pto.kernel",
    "tl": "write pto.load, pto.exp, pto.dot: functions of Triton's tl are functions of pto",
    "grid": "kernel[4, 2](x, y) launches 4 x 2 blocks; pto.block_num(0) is 4",
    "Tensor": "annotate an array in global memory as x: pto.Global[pto.f32]; t = pto.load(x) is a"
    " tile",
    "dtype": "element types are names of pto: pto.f32, pto.i8; t.dtype is that of a tile",
    "squeeze": "tiles have two dimensions: t.sum(axis=1) is a column, which broadcasts",
    "sync": 'leave it out: a program without flags gets them; isa.barrier("ALL") waits for all',
}
_SAME = {
    "view": "reshape",
    "ravel": "flatten",
    "float": "t.to(pto.f32)",
    "half": "t.to(pto.f16)",
    "int": "t.to(pto.i32)",
    "long": "t.to(pto.i64)",
    "double": "t.to(pto.f64)",
    "ndim": "size",
    "std": "d = t - t.mean(axis=1); pto.sqrt((d * d).mean(axis=1))",
    "clone": "copy",
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "fabs": "abs",
    **dict.fromkeys(("multiply", "mul"), "a * b"),
    "add": "a + b",
    **dict.fromkeys(("subtract", "sub"), "a - b"),
    **dict.fromkeys(("divide", "div", "truediv"), "a / b"),
    "matmul": "dot",
    "clip": "clamp",
    "vstack": "stack",
    "hstack": "stack",
    "cat": "stack",
    "trunc": "pto.where(t < 0.0, pto.ceil(t), pto.floor(t))",
    "tan": "pto.sin(t) / pto.cos(t)",
    "expand": "broadcast_to",
    "ones": "pto.full(16, 128, 1.0, pto.f32)",
    "ones_like": "pto.zeros_like(t) + 1.0",
    "square": "t * t",
    "power": "t ** 2.0",
    "pow": "t ** 2.0",
    "log1p": "pto.log(t + 1.0)",
    "sign": "pto.where(t > 0.0, 1.0, pto.where(t < 0.0, -1.0, 0.0))",
    "isnan": "pto.where(t != t, a, b)",
    "any": "pto.where(t > 0.0, 1.0, 0.0).max()",
    "all": "pto.where(t > 0.0, 1.0, 0.0).min()",
    **{f"float{bits}": f"pto.f{bits}" for bits in (16, 32, 64)},
    **{f"fp{bits}": f"pto.f{bits}" for bits in (16, 32, 64)},
    **{
        f"{kind}int{bits}": f"pto.{kind or 'i'}{bits}"
        for kind in ("u", "")
        for bits in (8, 16, 32, 64)
    },
    "bfloat16": "pto.bf16",
    "float8_e4m3fn": "pto.f8e4m3",
    "float8_e5m2": "pto.f8e5m2",
    "bool": "pto.u8",
    **dict.fromkeys(("ndarray", "tensor"), "Tensor"),
    **dict.fromkeys(("unsqueeze", "expand_dims"), "squeeze"),
    **dict.fromkeys(("syncthreads", "debug_barrier"), "sync"),
    "empty": "pto.tile(16, 128, pto.f32)",
    "empty_like": "pto.zeros_like(t)",
    "permute": "transpose",
    "inf": 'float("inf")',
    "nan": 'float("nan")',
    "pi": "math.pi",
}
# The classes of a kernel's values, as a user knows them, and a general help for each.
_LOAD = "instructions compute on tiles: t = pto.load(x[i:, :], 16, 128)"
_KINDS: dict[type, tuple[str, str]] = {
    Tile: ("a tile", "`pto isa` lists the instructions; all are functions of pto.isa"),
    Global: ("an array in global memory", _LOAD),
    View: ("a window on global memory", _LOAD),
    Comparison: (
        "a comparison of tiles",
        "choose by it, pto.where(t > 0.0, a, b); make numbers of it, (t > 0.0).to(pto.f32); join"
        " comparisons in brackets with & and |; ~ is the opposite",
    ),
    FormattedText: ("a text with numbers of the program", 'show it: print(f"n = {n}")'),
    DType: (
        "an element type",
        "t.to(pto.f16) converts a tile; pto.scalar(3, pto.f32) is a number of that type",
    ),
    Scalar: (
        "a number of the program",
        "+ - * // % << >> & | ^ **, abs, divmod, comparisons and .to() work on it",
    ),
}
_WINDOW_HELP = {
    "transpose": "x[i : i + 16, j : j + 64].T",
    "reshape": "reshape the array first: x.reshape(-1, 1)[i : i + 16, :]; x[i : i + 16, None] is a"
    " part of one dimension as a column",
    "shape": "x.shape is that of the array; t.shape and t.valid are those of the tile it fills",
}
_CALL = re.compile(r"(?:(\w+)\.)?(\w+)\(\) ((?:missing|takes|got) .*)")
_EXPRESSIONS = "pto.lang.express."
_OURS = "pto.lang."
RESULT = "_pto_result"  # the variable of a function's result, where it returns early
Told = tuple[str, str, str | None]  # code, message, help


def misused(error: Exception, unbound: Mapping[str, str] | None = None) -> KernelError | None:
    """The finding for an error in a kernel, at the user's line; None if the error is not about the
    values of a kernel or a function of pto. `unbound`: variables without a value, with reasons."""
    step = user_step(error)
    if step is None or isinstance(error, PtoError):
        return None
    advice = None
    if isinstance(error, NameError):
        advice = _unbound(error, unbound or {})
    elif isinstance(error, AttributeError):
        advice = _attribute(error.name or "", error.obj) or _operation(str(error))
    elif isinstance(error, TypeError):
        advice = _call(str(error), step.tb_frame) or _operation(str(error))
    if advice is None and _raised_here(error):
        advice = "PTO-U205", f"the call does not take these arguments: {error}", None
    if advice is None:
        return None
    code, message, help = advice
    converted = KernelError(Diagnostic(code, message, raised_at(error), help=help))
    converted.__cause__ = error if _raised_here(error) else None
    return converted


def _unbound(error: NameError, unbound: Mapping[str, str]) -> Told | None:
    """A variable that has no value after a branch or loop of the program."""
    named = re.search(r"variable '(\w+)'", str(error))
    name = named[1] if named else error.name or ""
    if name == RESULT:
        reason = unbound.get(name) or "it is returned only inside a loop, which may not run"
        return "PTO-U217", f"the function has no one result: {reason}", "return one kind of value"
    if name not in unbound:
        frame = _raising(error)
        if not is_users(frame.f_code.co_filename):
            return None
        names = {*frame.f_locals, *frame.f_globals, *dir(builtins)}
        near = nearest(name, [candidate for candidate in names if not candidate.startswith("_pto")])
        return "PTO-U217", f"`{name}` has no value here", near
    help = "bind it to a number, a register or a tile of one type on every way to this line"
    return "PTO-U217", f"`{name}` has no one value here: {unbound[name]}", help


def _raised_here(error: Exception) -> bool:
    """True if a function of pto raised an error about its arguments."""
    is_about = isinstance(error, TypeError | ValueError | AttributeError | LookupError)
    return is_about and is_own(_raising(error).f_code.co_filename)


def _raising(error: Exception) -> FrameType:
    """The frame that raised an error."""
    return [*walk_tb(error.__traceback__)][-1][0]


def words_of(value: object) -> str:
    """A value of a kernel as a user knows it."""
    matching = (words for kind, (words, _) in _KINDS.items() if isinstance(value, kind))
    return next(matching, f"a {type(value).__name__}")


def _attribute(name: str, owner: object) -> Told | None:
    if isinstance(owner, ModuleType) and owner.__name__ == "pto":
        return "PTO-U081", f"pto has no `{name}`", advice(name)
    if isinstance(owner, ModuleType) and owner.__name__ == "pto.isa":
        help = f"it is a function of the language: pto.{name}" if name in PUBLIC else None
        return "PTO-U081", f"pto.isa has no `{name}`", help or nearest(name, dir(owner))
    if isinstance(owner, int | float) and hasattr(Scalar, name):
        help = f"pto.scalar({owner!r}, pto.i32) is a number of the program, which has .{name}"
        return "PTO-U081", f"a number of Python has no `{name}`: it is {owner!r} here", help
    for kind, (words, general) in _KINDS.items():
        if isinstance(owner, kind):
            help = instead(name) if kind is Tile else _WINDOW_HELP.get(name) if kind is View else ""
            return "PTO-U081", f"{words} has no `{name}`", help or _close(name, kind) or general
    return None


def _operation(text: str) -> Told | None:
    """The finding for Python's message about an operator or builtin, if it names a kernel class."""
    named = {kind.__name__: entry for kind, entry in _KINDS.items()}
    kinds = [name for name in re.findall(r"\w+", text) if name in named]
    if not kinds:
        return None
    message = re.sub(
        r"(?:object of )?(?:type )?'?(\w+)'?(?: object)?",
        lambda m: named[m[1]][0] if m[1] in named else m[0],
        text,
    )
    return "PTO-U081", message, named[kinds[0]][1]


def advice(name: str) -> str | None:
    """A help line for a name that `pto` does not have."""
    if name in instructions():
        return f"write `from pto import isa` and `isa.{name}`: instructions are in pto.isa"
    return instead(name) or nearest(name, known())


def instead(name: str) -> str | None:
    """A help line for a function or method of that name: the function or instruction to write."""
    name = _SAME.get(name, name)
    if name in _METHODS:
        return _METHODS[name]
    home, _ = RENAMED.get(name) or (PUBLIC.get(name, ""), name)
    if home.startswith(_EXPRESSIONS):
        return f"it is a function: {_usage(f'pto.{name}', find(name))}"
    if hasattr(Tile, name):
        return f"it is a method: {_usage(f't.{name}', getattr(Tile, name))}"
    if f"t{name}" in instructions():
        return f"it is an instruction into a tile of yours: isa.t{name}"
    return f"write {name}" if re.search(r"[^\w]", name) else None


def _close(name: str, kind: type) -> str | None:
    return nearest(name, [attribute for attribute in dir(kind) if not attribute.startswith("_")])


def _call(text: str, frame: FrameType) -> Told | None:
    """The finding for Python's message about a call, if a function of pto was called."""
    parts = _CALL.match(text)
    if parts is None:
        return None
    owner, name, complaint = parts.groups()
    if name == "__init__" and owner in PUBLIC:
        owner, name = None, owner
    if owner is not None:
        method = getattr(Tile, name, None)
        if owner not in {base.__name__ for base in Tile.__mro__} or method is None:
            return None
        spelled = f"t.{name}"
        return "PTO-U205", f"{spelled} {complaint}", f"the call is {_usage(spelled, method)}"
    function = frame.f_locals.get(name, frame.f_globals.get(name))
    if function is not None and not getattr(function, "__module__", "").startswith(_OURS):
        return None  # the user's own function
    public = {attribute: current for current, (_, attribute) in RENAMED.items()}.get(name, name)
    home = RENAMED.get(public, (PUBLIC.get(public, ""), ""))[0]
    if not home.startswith(_OURS):
        return None
    spelled = f"pto.{public}"
    return "PTO-U205", f"{spelled} {complaint}", f"the call is {_usage(spelled, find(public))}"


def _usage(spelled: str, function: object) -> str:
    """`pto.where(cond, a, b, dst=None)`, and the first line of its documentation."""
    about = (inspect.getdoc(function) or "").partition("\n")[0]
    if not callable(function):  # a property
        return f"{spelled}: {about}"
    named = [
        parameter.name
        if parameter.default is parameter.empty
        else f"{parameter.name}={parameter.default!r}"
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]
    return f"{spelled}({', '.join(named)}): {about}"
