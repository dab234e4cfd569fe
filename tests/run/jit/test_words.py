"""Both engines run a meaning with words of their own: the words have the same parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from pto.isa.meaning.cube.factors import OperandLoads
from pto.isa.meaning.cube.load import Into
from pto.isa.meaning.handle.elements import ElementHandles
from pto.isa.meaning.handle.view import Handles
from pto.isa.meaning.memory.words import Bursts
from pto.isa.meaning.order.words import AgentSignals
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.vector.sort import PointerMoves
from pto.isa.meaning.vector.unaligned import Streams
from pto.isa.meaning.vector.words import Registers
from pto.isa.meaning.vmi.words import VectorWords
from pto.run.jit.emit.cube.load import Loads
from pto.run.jit.emit.handle.words import Words as CompiledHandles
from pto.run.jit.emit.memory.words import Words as CompiledBursts
from pto.run.jit.emit.order.signals import SignalWords
from pto.run.jit.emit.tile.mover import Mover as CompiledMover
from pto.run.jit.emit.vector.sort import Words as CompiledPointerMoves
from pto.run.jit.emit.vector.words import Words as CompiledRegisters
from pto.run.jit.emit.vmi.words import Words as CompiledVectors

SETS = [
    (Handles, CompiledHandles),
    (ElementHandles, CompiledHandles),
    (Registers, CompiledRegisters),
    (Streams, CompiledRegisters),
    (VectorWords, CompiledVectors),
    (Bursts, CompiledBursts),
    (Into, Loads),
    (OperandLoads, Loads),
    (Mover, CompiledMover),
    (PointerMoves, CompiledPointerMoves),
    (AgentSignals, SignalWords),
]
# Sets whose meanings use every word; of the others, which extend `Mover`, only some are used.
WHOLE = (Handles, ElementHandles, Registers, Streams, VectorWords, Mover, PointerMoves)
# On arrays only: the state of the engine, and words of meanings that have no compiled form.
ON_ARRAYS = {"case", "core", "word", "array", "merge_lists"}


def _parameters(word: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters without the object itself."""
    return list(inspect.signature(word).parameters.values())[1:]


def _names(word: Callable[..., Any]) -> list[tuple[str, Any]]:
    return [(p.name, p.kind) for p in _parameters(word)]


def _words(words: type) -> set[str]:
    return {name for name in dir(words) if not name.startswith("_")}


@pytest.mark.parametrize(("arrays", "compiled"), SETS, ids=lambda each: each.__qualname__)
def test_words_have_the_same_parameters(arrays: type, compiled: type) -> None:
    for name in sorted(_words(arrays) & _words(compiled)):
        ours, theirs = getattr(arrays, name), getattr(compiled, name)
        if callable(ours) and callable(theirs):
            assert _names(ours) == _names(theirs), name
            pairs = zip(_parameters(ours), _parameters(theirs), strict=True)
            assert all(p.default in (p.empty, q.default) for p, q in pairs), name


@pytest.mark.parametrize(("arrays", "compiled"), SETS, ids=lambda each: each.__qualname__)
def test_compiled_words_are_complete(arrays: type, compiled: type) -> None:
    if arrays in WHOLE:
        assert _words(arrays) - _words(compiled) <= ON_ARRAYS
