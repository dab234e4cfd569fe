"""Collectives of ranks: data moves by the words of a mover (`views.py`).

All ranks of one process share an address space. Python handles barriers of ranks and of their
hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.isa.meaning.memory import collective
from pto.run.jit.emit.operation import KINDS, OpContext
from pto.run.jit.emit.tile.moves import emit_move
from pto.run.jit.ir.kinds import certain, unsupported_if
from pto.run.jit.llvm.text import I64
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.values import Lowered, ViewDesc


def _collective(s: OpContext) -> Sequence[Lowered]:
    body: collective.Collective = s.body
    unsupported_if(collective.by_ccu(s.case), "ranks that come together")
    x, member = s.x, s.operands("group")[collective.root_of(s.case)]
    root = certain(member, ViewDesc)
    place = x.at(s.e.word(Word.OWNED), x.mul(root.memory, 8))
    s.fault_unless(x.compare("ne", x.load(I64, place, 8), 0))
    return emit_move(s, body.moves)


KINDS[collective.Collective] = _collective
