"""Optimisations switched off, one at a time: tests that must fail then.

A pytest plugin: `pytest -p tests.switches` runs each of `SAMPLE` with its switch thrown.
`test_switches.py` requires every one of them to fail: no switch is off without notice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from pto.core import disk_cache as cache
from pto.run.jit.compiler import NativeCompiler
from pto.run.jit.emit import fusion
from pto.run.jit.emit.cube import factors, forwarding
from pto.run.jit.emit.handle.view import Guarded
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import masked, steps
from pto.run.jit.ir import passes
from pto.run.jit.runtime import threads
from pto.run.launch.prepared import PreparedKernel

Switch = Callable[[pytest.MonkeyPatch], None]


def _guards(patch: pytest.MonkeyPatch) -> None:
    """The guard of every fast path fails: loads, stores, DMA, matmuls, fixpipe run in NumPy."""

    def host(s: OpContext, condition: str, fast: Callable[[], None], unless: str) -> None:
        s.e.host_fallback(s.op, unless, seldom=True)

    patch.setattr(masked, "guarded", host)


def _words(patch: pytest.MonkeyPatch) -> None:
    """Words that may leave an instruction to the reference engine always do."""
    leave = Guarded.leave_unless
    patch.setattr(Guarded, "leave_unless", lambda words, _, why="": leave(words, False, why))


def _attribute(owner: Any, name: str, value: Any) -> Switch:
    """A function or method that always gives the same."""
    return lambda patch: patch.setattr(owner, name, lambda *given, **named: value)


_FUSION, _JIT = "tests/run/jit/test_fusion.py", "tests/run/jit"
SWITCHES: dict[str, tuple[Switch, tuple[str, ...]]] = {
    "guards of fast paths": (
        _guards,
        (
            "tests/known/test_dma.py::test_mte_gm_ub_counts_bytes_from_start_to_start",
            "tests/known/test_cube.py::test_dn2nz_reads_columns",
            f"{_JIT}/test_products.py::test_accumulators_of_tiles_are_stored_by_pointer[16]",
        ),
    ),
    "guards of words": (
        _words,
        (
            f"{_JIT}/test_vector_sort.py::"
            "test_merges_that_stop_where_a_list_runs_out[1-lengths0-3-f32]",
            f"{_JIT}/test_signals.py::test_agents_take_turns[a5-30]",
        ),
    ),
    "fusion": (
        _attribute(fusion, "_may", False),
        (f"{_FUSION}::test_softmax[4-64]", f"{_FUSION}::test_in_place"),
    ),
    "copy forwarding": (
        _attribute(fusion.FusingEmitter, "_forward", False),
        (f"{_JIT}/test_forwarding.py::test_moves_and_a_product[shape0-kind0]",),
    ),
    "left factors read in boxes": (
        _attribute(factors, "has_runs", False),
        (f"{_JIT}/test_forwarding.py::test_a_left_factor_of_f32_is_read_where_it_is[kind0-64]",),
    ),
    "loads left out": (
        _attribute(forwarding, "loads_factor", False),
        (f"{_JIT}/test_forwarding.py::test_products_read_rows_of_global_memory[size0-f32]",),
    ),
    "rematerialisation": (
        lambda patch: patch.setattr(passes.Rematerialiser, "of", lambda self, steps: list(steps)),
        (f"{_FUSION}::test_cheap_values_are_made_again",),
    ),
    "non-temporal stores": (
        _attribute(steps, "_may_be_large", False),
        (f"{_FUSION}::test_stores_past_the_cache",),
    ),
    "coroutines": (
        _attribute(NativeCompiler, "_coroutine", None),
        (f"{_JIT}/test_coroutines.py::test_nothing_of_a_queue_in_local_buffers_is_left_to_python",),
    ),
    "a compiled loop over blocks": (
        _attribute(PreparedKernel, "_gathered", None),
        (f"{_JIT}/test_threads.py::test_threads_are_kept",),
    ),
    "direct calls": (
        _attribute(PreparedKernel, "direct", None),
        (f"{_JIT}/test_direct.py::test_arrays_and_numbers_are_those_of_the_call",),
    ),
    "threads": (
        _attribute(threads, "count", 1),
        (f"{_JIT}/test_threads.py::test_every_block_runs_once[team]",),
    ),
    "the cache of objects": (
        _attribute(cache, "load", None),
        (f"{_JIT}/test_cache.py::test_the_second_time_nothing_is_compiled",),
    ),
}
SAMPLE = {test: name for name, (_, tests) in SWITCHES.items() for test in tests}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    throw, _ = SWITCHES[SAMPLE[item.nodeid]]
    with pytest.MonkeyPatch.context() as patch:
        throw(patch)
        return (yield)
