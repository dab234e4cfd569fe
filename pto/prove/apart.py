"""Arrays of a call that share bytes: proofs of blocks and order are about separate arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pto.ir.graph import Operation
from pto.isa.meaning.scalar.unit import LOAD_SCALAR
from pto.plan.stores import is_global, may_be_written
from pto.prove.assume import Stated
from pto.prove.questions import ALONE, Answer


def of_arrays(answer: Answer, functions: Sequence[Operation], stated: Stated) -> Answer:
    """A proof with its assumption that arrays are separate; unknown where arrays of the call share
    bytes and one of them may be written. `functions` run together."""
    args = functions[0].regions[0].block.args
    arrays = {n for n, arg in enumerate(args) if is_global(arg.type)}
    written = may_be_written(functions, len(args)) & arrays
    if len(arrays) < 2 or not written or not _depends(answer, functions):
        return answer
    for pair in stated.shared:
        if written & {*pair}:
            names = " and ".join(args[n].name for n in sorted(pair))
            text = f"{names} share bytes, and one of them is written"
            why = "arrays of the call share bytes"
            return replace(answer, verdict="unknown", text=text, assumes=(), reason=why)
    equal = [f"{args[n].name} is {args[first].name}" for n, first in stated.same.items()]
    apart = "other arrays share no bytes" if equal else "arrays share no bytes"
    return replace(answer, assumes=(*answer.assumes, *equal, apart))


def _depends(answer: Answer, functions: Sequence[Operation]) -> bool:
    """True for a proof that would be wrong if a store to one array changed another one."""
    if answer.verdict != "proved":
        return False
    if answer.question == "deadlock":  # equal loads from an array that is only read are equal
        return any(op.body is LOAD_SCALAR for f in functions for op in f.walk())
    return answer.question == "order" or (
        answer.question == "blocks" and ALONE not in answer.assumes
    )
