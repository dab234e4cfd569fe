"""How long a kernel takes on a chip, and what bounds it: the order of a run, with durations.

`stream.py` records what every instruction comes after, by the model of pipes that the sanitizer
uses; `price.py` computes how long each keeps its pipe; `clock.py` puts the two together.
`program.py`
makes the program that a chip runs, `launch.py` describes blocks, `kinds.py` finds identical
ones, `traffic.py` and `cache.py` compute their memory traffic, `shared.py` its times. `rounds.py`
chooses the rounds that are simulated, `measure.py` times them, `report.py` summarises them. The
numbers are data of `target`, the amounts of work facts of the rows (`isa/cost`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pto.ir.graph import Module, Operation
from pto.isa.cost.describe import RUN
from pto.isa.row.types import Ptr
from pto.observe.timing.advice import with_flags
from pto.observe.timing.cache import State, known_state
from pto.observe.timing.chips import Bench, bench, benches
from pto.observe.timing.launch import BlockLaunch
from pto.observe.timing.overrides import Overrides
from pto.observe.timing.program import chip_launch
from pto.observe.timing.remedies import FreeSpace, remedies
from pto.observe.timing.report import time_launch
from pto.observe.timing.result import Remedy, Timing
from pto.run.launch.call import count_of
from pto.run.launch.host import entry_functions
from pto.target.profile import device as find_device
from pto.verify.program import legal_target

__all__ = ["Bench", "Timing", "bench", "benches", "time"]


def time(
    module: Module,
    *,
    args: Sequence[Any] = (),
    blocks: int | tuple[int, ...] = 1,
    entry: str | None = None,
    profile: str | None = None,
    device: str | None = None,
    data: bool = False,
    advice: bool = True,
    cache: State = "cold",
    costs: Overrides | None = None,
) -> Timing:
    """The time of one launch on a chip. Arrays give their shapes; with `data`, their values.

    `cache`: the state of the L2 cache when the launch begins. cold: earlier launches had other
    inputs, their results may still be there. warm: they had the same arrays. clean: it holds data
    of others, none of which has to be written back. `costs` replace numbers of the chip.

    On profiles with separate cores a function for both is timed as `pto export` splits it.
    Nothing is written to the arrays: an instruction on data only reports its accesses. With `data`
    the run uses copies, for programs with control flow that depends on data. Without `advice` waits
    and remedies are left out, which takes a third of the time: a search needs only the figure.
    """
    if device is not None and profile is None:
        profile = find_device(device).profile
    target = legal_target(module, profile=profile, device=device)
    written = entry_functions(module, entry)
    split = chip_launch(module, written, target.profile, args, blocks)
    module, functions = split.module, split.functions
    chip = bench(device or target.profile.device, target.profile.name, costs)
    known_state(cache)
    writes = data or _moves_by_pointer(functions)
    copies = [a.copy() if writes and isinstance(a, np.ndarray) else a for a in split.args]
    launch = BlockLaunch(module, functions, target.profile, copies, count_of(blocks), data)
    name = ", ".join(f.symbol for f in written)
    timing = time_launch(launch, chip, name, split.notes, advice=advice, cache=cache)
    if not advice:
        return timing
    for remedy in remedies(
        timing, replace(chip, kind=timing.kind), FreeSpace(functions, target.profile)
    ):
        timing.offer(remedy)
    changed = with_flags(module, functions, target.profile)
    if changed is not None:
        other = replace(launch, module=changed, functions=split.functions_of(changed))
        saves_us = timing.us - time_launch(other, chip, name, advice=False, cache=cache).us
        timing.offer(Remedy("flags instead of barriers, as pto sync puts them", saves_us))
    return timing


def _moves_by_pointer(functions: Sequence[Operation]) -> bool:
    """True if transfers are known only from a run: it writes, so it gets copies."""
    return any(
        op.row.cost in ("move", *RUN) and any(isinstance(v.type, Ptr) for v in op.operands)
        for function in functions
        for op in function.walk()
    )
