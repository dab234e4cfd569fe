"""The cost of a row in words, for `pto isa`: what it is counted by, and each chip's numbers."""

from __future__ import annotations

from pto.isa.cost.describe import REGISTERS, RUN
from pto.isa.cost.vectors import priced, refined
from pto.isa.row.instr import Instr
from pto.target.costs import Costs
from pto.target.costs_a2a3 import COSTS as A2A3
from pto.target.costs_a5 import COSTS as A5

CHIPS = {"a2a3": A2A3, "a5": A5}


def cost_texts(row: Instr) -> dict[str, str]:
    """Cost text by profile; empty for a row that executes nothing."""
    if not row.cost:
        return {}
    return {name: _text(row, costs) for name, costs in CHIPS.items() if name in row.profiles}


def _text(row: Instr, costs: Costs) -> str:
    kind = priced(refined(row.cost, row.body))
    if kind == "move":
        return "bytes by the buffers it joins, as gm>ub, l1>l0a, l0c>gm"
    if kind in RUN:
        return "the bytes it moves, and a signal to the other side"
    if kind == "scope":
        return costs.classes[kind].text if kind in costs.classes else "no vector scopes"
    if costs.chip.vector_functions and kind in costs.lanes:
        latency, interval = costs.lanes[kind]
        return f"in a vector function: latency {latency:g}, one each {interval:g} cycles (sim)"
    if kind in REGISTERS:
        return "no vector registers"
    cost = costs.classes.get(kind)
    return "not known" if cost is None else cost.text
