"""What Python itself objects to in a kernel, as findings: a method that tiles do not have, a call
with too few or too many arguments. What to write is read off the names that there are."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from types import FrameType
from typing import Any

from pto.core.errors import Diagnostic, nearest
from pto.lang.call.place import KernelError, is_own, place_of
from pto.lang.call.signature import instructions
from pto.lang.names import PUBLIC, RENAMED
from pto.lang.values.tiles import Tile

# Methods that arrays have elsewhere, and what does it here.
_WRITTEN = {
    "reshape": "pto.treshape(t, to=pto.tile_type(32, 64, pto.f32)) sees the same bytes otherwise; a"
    " window of an array is loaded in any shape: pto.load(x[i:, :], 32, 64)",
    "cumsum": "row by row, total += t[r : r + 1, :]: examples/gallery/cumulative_sum.py",
    "transpose": "t.T",
    "astype": "t.to(pto.f16)",
    "size": "t.shape, and t.valid for the part that holds data",
    "var": "d = t - t.mean(axis=1); (d * d).mean(axis=1)",
    "copy": "u = pto.zeros_like(t); u[:] = t",
    "item": "pto.tgetval(t, 0)",
}
_SAME = {
    "view": "reshape",
    "flatten": "reshape",
    "ravel": "reshape",
    "float": "astype",
    "half": "astype",
    "int": "astype",
    "ndim": "size",
    "std": "var",
    "clone": "copy",
}
_CALL = re.compile(r"(?:(\w+)\.)?(\w+)\(\) ((?:missing|takes|got) .*)")
_EXPRESSIONS = "pto.lang.express."
_OURS = "pto.lang."


def misused(error: AttributeError | TypeError) -> KernelError | None:
    """The finding, where the line of a kernel is to blame and it is about tiles or our calls."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    frame = trace.tb_frame
    if is_own(frame.f_code.co_filename):
        return None
    if isinstance(error, TypeError):
        told = _call(str(error), frame)
    else:
        told = _attribute(error.name or "", error.obj)
    if told is None:
        return None
    code, message, help = told
    return KernelError(Diagnostic(code, message, place_of(frame.f_code, trace.tb_lasti), help=help))


def _attribute(name: str, owner: Any) -> tuple[str, str, str] | None:
    if not isinstance(owner, Tile):
        return None
    return "PTO-U081", f"tiles have no `{name}`", _instead(name)


def _instead(name: str) -> str:
    """A function of the same name, an instruction, or a name that is close."""
    written = _WRITTEN.get(_SAME.get(name, name))
    if written is not None:
        return written
    home, _ = RENAMED.get(name) or (PUBLIC.get(name, ""), name)
    if home.startswith(_EXPRESSIONS):
        return f"it is a function: {_usage(f'pto.{name}', _function(name))}"
    if f"t{name}" in instructions():
        return f"it is an instruction into a tile of yours: pto.t{name}"
    known = [each for each in dir(Tile) if not each.startswith("_")]
    return nearest(name, known) or "`pto isa` lists the instructions; all are functions of pto"


def _call(said: str, frame: FrameType) -> tuple[str, str, str] | None:
    """Python's sentence about a call, if what was called is a method of tiles or our function."""
    parts = _CALL.match(said)
    if parts is None:
        return None
    owner, name, complaint = parts.groups()
    if owner is not None:
        method = getattr(Tile, name, None)
        if owner not in {each.__name__ for each in Tile.__mro__} or method is None:
            return None
        shown = f"t.{name}"
        return "PTO-U205", f"{shown} {complaint}", f"the call is {_usage(shown, method)}"
    own = frame.f_locals.get(name, frame.f_globals.get(name))
    if own is not None and not getattr(own, "__module__", "").startswith(_OURS):
        return None  # a function of theirs
    public = {attribute: each for each, (_, attribute) in RENAMED.items()}.get(name, name)
    home = RENAMED.get(public, (PUBLIC.get(public, ""), ""))[0]
    if not home.startswith(_OURS):
        return None
    shown = f"pto.{public}"
    return "PTO-U205", f"{shown} {complaint}", f"the call is {_usage(shown, _function(public))}"


def _function(name: str) -> Any:
    home, attribute = RENAMED.get(name) or (PUBLIC[name], name)
    return getattr(import_module(home), attribute)


def _usage(shown: str, function: Any) -> str:
    """`pto.where(cond, a, b, dst=None)`, and the first line of what it is about."""
    named = [
        each.name if each.default is each.empty else f"{each.name}={each.default!r}"
        for each in inspect.signature(function).parameters.values()
        if each.name != "self"
    ]
    about = (inspect.getdoc(function) or "").partition("\n")[0]
    return f"{shown}({', '.join(named)}): {about}"
