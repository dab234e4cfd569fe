"""Programs as C++: what was written here, as source for the header library of the chip.

`function` (control flow, numbers) uses `places` (tiles, tensors) and `calls` (instructions);
`spelling` knows how C++ writes types and words.
"""

from __future__ import annotations

from pto.core.errors import fail
from pto.cxx.export.function import Line, function, identifier
from pto.cxx.export.places import parameter_type
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation
from pto.plan.memory import plan_memory
from pto.plan.mode import first_order
from pto.plan.scratch import complete
from pto.plan.sync import insert
from pto.run.launch.entry import entry_functions
from pto.target.facts import Profile
from pto.verify.functions import is_defined, name_of

__all__ = ["cpp"]

_HEAD = """\
// {what}, for {profile}. Compile it against the PTO header library.
#include <pto/pto-inst.hpp>
using namespace pto;
"""


def cpp(module: Module, profile: Profile, name: str = "kernel") -> str:
    """A program as C++ source: every tile at its address, every pipe ordered.

    A program that leaves order to a compiler gets the flags of `pto sync`. `name` is that of the
    kernel that calls both sides, where there are two.
    """
    return "\n".join(line.text for line in listing(module, profile, name))


def listing(module: Module, profile: Profile, name: str = "kernel") -> list[Line]:
    """The lines of `cpp`, each with the place in the source that it is for."""
    module = complete(copied(module), profile)
    ordered = first_order([module.op]) is not None or profile.name == "cpu"
    made = module if ordered else insert(module, profile)
    entries = entry_functions(made, None)
    placement = plan_memory(made, profile)
    head = _HEAD.format(what=", ".join(f"@{name_of(f)}" for f in entries), profile=profile.name)
    lines = [Line(text) for text in head.split("\n")]
    chosen = {id(f) for f in entries}
    defined = [f for f in made.functions() if is_defined(f)]
    several = len(entries) > 1
    helpers = [f for f in defined if id(f) not in chosen]
    sides = {name_of(f): f.own_side() for f in module.functions()}  # as the program says
    for f in [*helpers, *entries]:
        entry = not several and id(f) in chosen
        lines += function(f, placement, entry=entry, side=sides[name_of(f)])
    if several:
        lines += [Line(text) for text in _both_sides(entries, name).split("\n")]
    return lines


def _both_sides(entries: list[Operation], name: str) -> str:
    """One kernel that calls the function of each side."""
    given: dict[str, str] = {}
    calls: list[str] = []
    for function_ in entries:
        args = function_.regions[0].block.args
        names = [identifier(a.name) for a in args]
        for own, arg in zip(names, args, strict=True):
            type = parameter_type(arg.type)
            if given.setdefault(own, type) != type:
                raise fail("PTO-U249", f"the functions disagree about the type of %{own}")
        name += "_kernel" * (identifier(name_of(function_)) == identifier(name))
        calls.append(f"    {identifier(name_of(function_))}({', '.join(names)});")
    listed = ", ".join(f"{type} {own}" for own, type in given.items())
    return "\n".join([f"__global__ AICORE void {identifier(name)}({listed})", "{", *calls, "}", ""])
