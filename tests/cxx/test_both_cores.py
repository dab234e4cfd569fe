"""Natural kernels for both cores: one text that is proved, timed and exported on each chip."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.cxx import st
from pto.suite import pool
from tests.transform.both_cores import CASES


@pytest.mark.usefixtures("a_compiler")
@pytest.mark.parametrize("case", ["mlp", "causal attention", "quantised", "delta rule"])
@pytest.mark.parametrize("name", ["a2a3", "a5"])
def test_exports_compute_what_is_computed_here(case: str, name: str, tmp_path: Path):
    kernel, args, _, blocks, _ = CASES[case]()
    bound = kernel.on(name)[blocks]
    verdicts = {answer.question: answer.verdict for _, answer in bound.prove(*args)}
    assert [verdicts[each] for each in ("blocks", "order", "deadlock")] == ["proved"] * 3
    timing = bound.time(*args)
    assert set(timing.busy) == {"cube", "vector"}
    assert bound.export(*args, out=str(tmp_path / "out")).us == timing.us
    (run,) = pool.run(st.suite(st.find([tmp_path]), "", 300.0), 1)
    assert run.outcome in ("exact", "near"), run.diagnostics
