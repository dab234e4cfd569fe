"""The public names of `pto` and where they live; `pto/__init__.py` loads them when they are used.

Element types are not listed: they come from `core/dtypes.py`. Instructions are names of `pto.isa`.
"""

from __future__ import annotations

import builtins
from importlib import import_module
from typing import Any, Final

HOMES: Final = {
    "pto.cluster.on": "on",
    "pto.core.errors": "Diagnostic PtoError",
    "pto.core.findings": "Findings",
    "pto.cxx.export.folder": "Exported",
    "pto.cxx.kernel": "CppKernel cpp",
    "pto.ir.graph": "Module",
    "pto.ir.text.parser": "parse parse_file",
    "pto.ir.text.printer": "print_module",
    "pto.lang.control": "block_idx block_num range section_cube section_vector"
    " static_range subblock_idx subblock_num vecscope",
    "pto.lang.debug": "assert_",
    "pto.lang.diff.diff": "diff",
    "pto.lang.eager": "eager",
    "pto.lang.express.activations": "clamp erf gelu sigmoid silu softmax tanh",
    "pto.lang.express.arrange": "concatenate reshape",
    "pto.lang.express.choose": "full_like where zeros_like",
    "pto.lang.express.convert": "ceil floor",
    "pto.lang.express.gather": "take",
    "pto.lang.express.functions": "exp exp2 leaky_relu log log2 maximum minimum reciprocal relu"
    " rsqrt sqrt",
    "pto.lang.express.memory": "arange full load store tri zeros",
    "pto.lang.express.order": "argsort cumsum flip sort topk",
    "pto.lang.express.product": "dot",
    "pto.lang.express.trigonometry": "cos sin",
    "pto.lang.define": "kernel pair",
    "pto.judging.judgement": "Judgement",
    "pto.judging.pool": "judge",
    "pto.lang.kernel": "Kernel",
    "pto.lang.call.place": "KernelError",
    "pto.lang.operator": "Operator operator",
    "pto.lang.optimize": "OptimizedKernel",
    "pto.lang.program": "check",
    "pto.view.side": "side_by_side",
    "pto.lang.torch_op": "torch_op",
    "pto.graphs.python": "TaskGraph graph",
    "pto.lang.tune": "Tuning autotune tune",
    "pto.lang.values.registers": "Mask Pointer Vreg",
    "pto.lang.values.scalars": "Scalar cdiv scalar select",
    "pto.lang.values.tiles": "Tile assign set_validshape tile tile_type",
    "pto.lang.values.views": "Global View",
    "pto.observe.proofs": "Proofs",
    "pto.observe.sanitize": "Verdict sanitize",
    "pto.observe.timing": "Timing",
    "pto.optimize.report": "Optimization",
    "pto.run.machine.device": "Device",
    "pto.run.launch.host": "Report launch",
    "pto.run.watch.step": "Stepper Stop",
    "pto.run.launch.call": "Launch PtoWarning",
    "pto.run.machine.stream": "Event Graph Stream",
    "pto.run.machine.world": "World",
}
# Names that differ in their module, because they would shadow a builtin there.
RENAMED: Final = {
    "min": ("pto.lang.express.functions", "minimum"),
    "max": ("pto.lang.express.functions", "maximum"),
    "print": ("pto.lang.debug", "print_"),
    "round": ("pto.lang.express.convert", "round_"),
    "sum": ("pto.lang.express.functions", "total"),
    "abs": ("pto.lang.express.functions", "absolute"),
}
MODULES: Final = ("isa", "observe")  # the instructions; for authors of observers
PUBLIC: Final = {name: home for home, names in HOMES.items() for name in names.split()}


def find(name: str) -> Any:
    """The object of a name above; None for any other name."""
    home, attribute = RENAMED.get(name) or (PUBLIC.get(name), name)
    return getattr(import_module(home), attribute) if home else None


def known() -> set[str]:
    """Every public name: those above and the element types."""
    from pto.lang.values import elements

    return {*MODULES, *PUBLIC, *RENAMED, *elements.ELEMENTS}


def exported() -> list[str]:
    """`pto.__all__`: every public name that hides no builtin of Python, as `pto.range` would."""
    return sorted(known() - set(vars(builtins)))
