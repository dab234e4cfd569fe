"""Programs as C++: what was written here, as source for the header library of the chip.

`function` (control flow, numbers) uses `places` (tiles, tensors) and `calls` (instructions);
`spelling` knows how C++ writes types and words.
"""

from __future__ import annotations

from pto.core.errors import fail
from pto.cxx.export.function import (
    SET_SIGNALS,
    SIGNALS,
    Line,
    function,
    identifier,
)
from pto.cxx.export.host import free_name
from pto.cxx.export.places import parameter_type
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation
from pto.plan.calls import FunctionNames, calls, entry_functions, names_of, sides
from pto.plan.memory import plan_memory
from pto.plan.sync import insert
from pto.run.launch.arguments import parameters
from pto.target.facts import Profile
from pto.transform.cores import CUBE, VECTOR, vector_on_first_sub_block
from pto.transform.regions import state_constants
from pto.transform.scratch import complete
from pto.verify.functions import first_order

__all__ = ["SIGNALS", "cpp"]

_HEAD = """\
// {what}, for {profile}. Compile it against the PTO header library.
#include <pto/pto-inst.hpp>
using namespace pto;
"""


def cpp(module: Module, profile: Profile, name: str = "kernel", signals: bool = False) -> str:
    """A program as C++ source: every tile at its address, every pipe ordered.

    A program that leaves order to a compiler gets the flags of `pto sync`. `name` is that of the
    kernel that calls both sides, where there are two. With `signals` the kernel takes the memory
    first that carries signals between cores of a2a3.
    """
    return "\n".join(line.text for line in listing(module, profile, name, signals))


def listing(
    module: Module, profile: Profile, name: str = "kernel", signals: bool = False
) -> list[Line]:
    """The lines of `cpp`, each with the place in the source that it is for."""
    module = complete(copied(module), profile)
    _use_sub_blocks(module, profile)
    for f in (f for f in module.functions() if f.has_body):
        state_constants(f)
    ordered = first_order([module.op]) is not None or profile.name == "cpu"
    ordered_module = module if ordered else insert(module, profile)
    entries = entry_functions(ordered_module, None)
    placement = plan_memory(ordered_module, profile)
    head = _HEAD.format(what=", ".join(f"@{f.symbol}" for f in entries), profile=profile.name)
    lines = [*map(Line, head.split("\n")), *map(Line, _simulated(ordered_module))]
    several = len(entries) > 1
    helpers = [f for f in ordered_module.functions() if f.has_body and f not in entries]
    sides = {f.symbol: f.own_side() for f in module.functions()}  # as in the program
    for f in [*helpers, *entries]:
        alone = not several and f in entries
        takes = signals and alone
        lines += function(f, placement, entry=alone, side=sides[f.symbol], signals=takes)
    if several:
        lines += map(Line, _both_sides(entries, name, signals).split("\n"))
    return lines


def _use_sub_blocks(module: Module, profile: Profile) -> None:
    """Guard vector code that a launch runs on one sub-block: a board starts both."""
    waiting, names = entry_functions(module, None), FunctionNames()
    agents = {s.name: s.agents for s in sides(waiting, profile)}
    if CUBE not in agents or agents.get(VECTOR) != 1:
        return
    guarded: set[Operation] = set()
    while waiting:
        function = waiting.pop()
        if function not in guarded:
            guarded.add(function)
            outside = [f for op, f in calls(function, names) if op.side() != VECTOR]
            if function.side() == VECTOR and function.signature.results:
                why = "C++ starts it on two sub-blocks, and a launch on one, which has its result"
                raise fail("PTO-U249", f"@{function.symbol} has no form: {why}", loc=function.loc)
            vector_on_first_sub_block(function)
            waiting += outside


def _simulated(module: Module) -> list[str]:
    """Definitions for the simulator of the library, where it lacks a call with all operands."""
    lacking = {
        line: None
        for op in module.walk()
        if all(map(op.group, op.row.operand_names))
        for line in op.row.simulated.splitlines()
    }
    return ["#ifdef __CPU_SIM", "namespace pto {", *lacking, "}", "#endif"] if lacking else []


def _both_sides(entries: list[Operation], name: str, signals: bool) -> str:
    """One kernel that calls the function of each side."""
    params = parameters(*entries)
    named = {p.name: free_name(p.name, [SIGNALS] if signals else []) for p in params}
    params_text = [f"{parameter_type(p.type)} {named[p.name]}" for p in params]
    calls: list[str] = []
    if signals:
        params_text.insert(0, f"__gm__ uint64_t* {SIGNALS}")
        calls += SET_SIGNALS
    for entry in entries:
        entry_name = identifier(entry.symbol)
        name += "_kernel" * (entry_name == identifier(name))
        names = names_of(entry.regions[0].block.args, [p.name for p in params])
        calls.append(f"    {entry_name}({', '.join(named[n] for n in names)});")
    head = f"__global__ AICORE void {identifier(name)}({', '.join(params_text)})"
    return "\n".join([head, "{", *calls, "}", ""])
