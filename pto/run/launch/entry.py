"""Which functions of a program a launch runs."""

from __future__ import annotations

from pto.core.errors import Diagnostic, Loc, PtoError, fail
from pto.ir.graph import Module, Operation
from pto.run.machine.sides import peers
from pto.verify.functions import entries, is_defined, name_of


def entry_functions(module: Module, entry: str | None) -> list[Operation]:
    """The function to run, with those at the other ends of its queues: they run together."""
    functions = [f for f in module.functions() if is_defined(f)]
    if not functions:
        place = Loc(module.source.file, 1) if module.source.file else None
        raise fail("PTO-U030", "the program has no function", loc=place)
    if entry is not None:
        chosen = [f for f in functions if name_of(f) == entry]
        if not chosen:
            known = ", ".join(f"@{name_of(f)}" for f in functions)
            raise fail("PTO-U030", f"there is no function @{entry}; the program has {known}")
        return chosen if len(chosen) > 1 else peers(chosen[0], module)
    found = entries(functions)
    if not found:
        found = [f for f in functions if f.side() is not None]
    if found and ({id(f) for f in found} <= {id(f) for f in peers(found[0], module)}):
        return peers(found[0], module)
    if {f.side() for f in found} == {"cube", "vector"} and len(found) == 2:
        return found
    known = ", ".join(f"@{name_of(f)}" for f in found or functions)
    raise PtoError(
        Diagnostic(
            "PTO-U031", f"which function is to run? The program has {known}", help="--entry NAME"
        )
    )
