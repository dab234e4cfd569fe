"""The public names of `pto` and where they live; `pto/__init__.py` loads them when they are used.

Instructions and element types are not listed: they come from the rows and from `core/dtypes.py`.
"""

from __future__ import annotations

from typing import Final

HOMES: Final = {
    "pto.core.errors": "Diagnostic PtoError",
    "pto.ir.graph": "Module",
    "pto.ir.parser": "parse parse_file",
    "pto.ir.printer": "print_module",
    "pto.lang.control": "Else If block_idx block_num carry range section_cube section_vector"
    " subblock_idx subblock_num vecscope",
    "pto.lang.diff": "diff",
    "pto.lang.difference": "Difference",
    "pto.lang.eager": "eager",
    "pto.lang.kernel": "Kernel kernel pair",
    "pto.lang.place": "KernelError",
    "pto.lang.program": "check",
    "pto.lang.registers": "Mask Pointer Vreg",
    "pto.lang.scalars": "Scalar cdiv scalar select",
    "pto.lang.tiles": "Tile assign set_validshape tile tile_type",
    "pto.lang.views": "Global View",
    "pto.observe.sanitize": "sanitize",
    "pto.run.device": "Device",
    "pto.run.host": "Report launch",
    "pto.run.step": "Stepper Stop",
    "pto.run.stream": "Event Graph Launch Stream",
    "pto.run.world": "World",
}
# Under another name at home, where it would hide a builtin.
RENAMED: Final = {
    "min": ("pto.lang.scalars", "minimum"),
    "max": ("pto.lang.scalars", "maximum"),
}
MODULES: Final = ("observe",)  # whoever writes an observer of a run finds its parts there
PUBLIC: Final = {name: home for home, names in HOMES.items() for name in names.split()}
