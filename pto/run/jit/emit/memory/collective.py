"""What asynchronous transfers share, in compiled code: nothing that anybody could see."""

from __future__ import annotations

from collections.abc import Sequence

from pto.isa.meaning.memory import collective
from pto.isa.meaning.tile import move
from pto.run.jit.border.values import Native, Nothing
from pto.run.jit.emit.table import Spot, emits


@emits(
    collective.BUILD_SESSION,
    move.PREFETCH_ASYNC,
    move.PREFETCH_CONTEXT,
    move.PREFETCH_SESSION,
    cheap=True,
)
def _nothing(s: Spot) -> Sequence[Native]:
    return [Nothing(())]
