"""Formulas of cost: cycles that work keeps its pipe, from the numbers of its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pto.isa.cost.work import (
    CodeWork,
    Cycles,
    FractalWork,
    MatmulWork,
    ScopeWork,
    TransferWork,
    VectorStep,
    VectorWork,
    Work,
)
from pto.target.costs import Cost, Costs, Status


class Price(NamedTuple):
    """The cost of one instruction, without contention.

    `start` cycles are paid once; then the longest of `least`, and the bytes at the rates of a hit
    and of a miss. Only transfers with global memory have bytes.
    """

    start: float
    least_hit: float
    least_miss: float
    hit_rate: float = 0.0  # bytes a cycle; 0: no bytes
    miss_rate: float = 0.0
    lat_hit: float = 0.0
    lat_miss: float = 0.0
    lat_load: float = 0.0
    same: float = 0.0  # bytes a cycle for all cores that access the same lines; 0: no limit
    status: Status = "measured"
    cost: str = ""

    def alone(self, work: Work) -> float:
        """Cycles on the pipe, with all data in the cache and no other core."""
        nbytes = work.nbytes if isinstance(work, TransferWork) and self.hit_rate else 0
        return self.start + max(self.least_hit, nbytes / self.hit_rate if nbytes else 0.0)


def price(work: Work, costs: Costs) -> Price:
    """The price of an operation on the chips of a profile."""
    return _FORMS[type(work)](work, costs)


def _fixed(cycles: float, cost: Cost, name: str) -> Price:
    return Price(cycles, 0.0, 0.0, status=cost.status, cost=name)


def _transfer(work: TransferWork, costs: Costs) -> Price:
    cost = costs.of(work.cost)
    if cost.form == "vector":
        return _fixed(cost["fixed"] + -(-work.nbytes // 256) * cost["slope"], cost, work.cost)
    if cost.form == "load":
        past = work.region is not None and work.region.passes_by
        return Price(
            0.0,
            max(cost["issue"], work.bursts * cost["burst_hit"]),
            max(cost["issue"], work.bursts * cost["burst_past" if past else "burst_miss"]),
            cost["r_hit"],
            cost["r_miss"],
            cost["lat_hit"],
            cost["lat_miss"],
            cost["lat_load"],
            cost["same"],
            cost.status,
            work.cost,
        )
    if work.region is not None:
        rate, least = cost["rate"], work.bursts * cost["burst"]
        return Price(cost["start"], least, least, rate, rate, status=cost.status, cost=work.cost)
    return _fixed(cost["start"] + work.nbytes / cost["rate"], cost, work.cost)


def _fractals(work: FractalWork, costs: Costs) -> Price:
    cost = costs.of(work.cost)
    rate = cost[f"{work.element}_rate"] or cost["rate"]
    return _fixed(cost["column"] * work.columns + work.nbytes / rate, cost, work.cost)


def _product(work: MatmulWork, costs: Costs) -> Price:
    cost = costs.of(work.cost)
    return _fixed(cost["head"] + work.steps * passes(work, costs), cost, work.cost)


def passes(work: MatmulWork, costs: Costs) -> float:
    """Cycles of one step."""
    return costs.of(work.cost)[f"{work.element}_passes"] or 1.0


def _cycles(work: Cycles, costs: Costs) -> Price:
    cost = costs.of(work.cost)
    return _fixed(work.times * cost[work.how], cost, work.cost)


def _code(work: CodeWork, costs: Costs) -> Price:
    cost = costs.of(work.cost)
    cycles = work.operations * cost["operation"] + work.branches * cost["branch"]
    return _fixed(cycles + work.divisions * cost["division"], cost, work.cost)


def _vector(work: VectorWork, costs: Costs) -> Price:
    if costs.chip.vector_functions and all(step.cost in costs.lanes for step in work.steps):
        return _tile_function(work, costs)
    cycles, worst = 0.0, costs.of(work.steps[0].cost)
    for step in work.steps:
        cost = costs.of(step.cost)
        cycles += _repeats(step, cost, costs.chip.loop)
        worst = cost if cost.status == "guess" else worst
    return _fixed(cycles, worst, work.cost)


def _repeats(step: VectorStep, cost: Cost, loop: float) -> float:
    """Start-up and repeats; a loop of the header issues no faster than the scalar unit."""
    if cost["element"]:
        return cost["fixed"] + step.elements * cost["element"]
    slope = cost["slope16"] if step.is_16_bit and cost["slope16"] else cost["slope"]
    if cost["conflict"]:
        slope += (cost["conflict"] - slope) * step.conflict
    interval = cost["chain"] if step.chained else 0.0
    again = step.instructions - 1
    return cost["fixed"] + max(step.repeats * slope + again * interval, again * loop)


def _tile_function(work: VectorWork, costs: Costs) -> Price:
    """A tile operation is a loop over registers: load, compute, store."""
    counts: dict[str, float] = {}
    for step in work.steps:
        counts["reg_load"] = counts.get("reg_load", 0) + step.repeats * max(1, step.sources)
        counts["reg_store"] = counts.get("reg_store", 0) + step.repeats
        name = f"{step.cost}16" if step.is_16_bit and f"{step.cost}16" in costs.lanes else step.cost
        counts[name] = counts.get(name, 0) + step.repeats
    return _busy(counts, costs, work.cost)


def _function(work: ScopeWork, costs: Costs) -> Price:
    return _busy(dict(work.counts), costs, work.cost)


def _busy(counts: dict[str, float], costs: Costs, name: str) -> Price:
    """The busiest port or unit, after the start-up and before the drain."""
    cost, lanes = costs.of("scope"), costs.lanes
    loads = sum(n for kind, n in counts.items() if kind in _LOADS)
    stores = sum(n for kind, n in counts.items() if kind in _STORES)
    issued = sum(counts.values())
    computed = 0.0
    slow = 0.0
    for kind, n in counts.items():
        _, interval = lanes.get(kind, lanes["lane"])
        if kind in _LOADS or kind in _STORES:
            slow += n * (interval - 1)
        else:
            computed += n * interval
    longest = max(
        issued / cost["issue"],
        loads / cost["loads"],
        stores / cost["stores"],
        computed / cost["units"],
    )
    return _fixed(cost["startup"] + longest + slow + cost["drain"], cost, name)


_LOADS = frozenset({"reg_load", "reg_gather", "gather"})
_STORES = frozenset({"reg_store", "reg_scatter"})
_FORMS: dict[type, Callable[[Any, Costs], Price]] = {
    CodeWork: _code,
    TransferWork: _transfer,
    FractalWork: _fractals,
    MatmulWork: _product,
    Cycles: _cycles,
    VectorWork: _vector,
    ScopeWork: _function,
}
