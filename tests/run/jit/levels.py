"""A few whole programs on both engines, on the level that PTO_JIT_CPU names; run by test_levels.

Prints what was compared, and what became of the same text for another kind of processor.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm

from pto.core.dtypes import dtype
from pto.run.jit.llvm import native
from tests import agreement
from tests.run.jit.bench import BothEngines, edge_values
from tests.vectors import reg

EXAMPLES = (
    *("softmax", "softmax_registers", "gemm_f16", "gemm_int8"),
    *("flash_attention", "layernorm", "top_k"),
)
ARM = "aarch64-unknown-linux-gnu"
_ELF, _MACHINE, _AARCH64 = b"\x7fELF", 18, 183


def registers() -> None:
    """Vector registers of every width, masked, with loads and stores."""
    for elem in ("f32", "f16", "bf16", "i8", "ui16", "i32"):
        kind, bench = dtype(elem), BothEngines()
        bench.mask("m", 8 * kind.itemsize, [0, 2, 3, 7, 20, 31])
        for name in "ab":
            bench.vreg(name, elem, edge_values(kind, kind.lanes, ord(name)))
        lines = [
            f"%{n} = pto.{op} %a, %b, %m : {{a}}, {{b}}, {{m}} -> {reg(elem)}"
            for n, op in (("x", "vadd"), ("y", "vmax"))
        ]
        lines.append(f"%r = pto.vsub %x, %y, %m : {reg(elem)}, {reg(elem)}, {{m}} -> {reg(elem)}")
        bench.one("\n".join(lines), reg(elem))


def main() -> None:
    texts: dict[str, None] = {}
    compile_here = native.Target.code

    def note(self: native.Target, text: str, names: Any) -> Any:
        texts[text] = None
        return compile_here(self, text, names)

    native.Target.code = note  # type: ignore[method-assign]
    agreement.STATE.mode = "all"
    agreement.install()
    for name in EXAMPLES:
        import_module(f"examples.{name}").example()
    launches = agreement.STATE.compared
    registers()
    if "--emit" in sys.argv:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        machine = llvm.Target.from_triple(ARM).create_target_machine(opt=0, jit=True)
        native.Target.optimises = False  # the object is only looked at
        for text in texts:
            if "@llvm.x86." in text:  # which another processor never gets
                continue
            image = native.object_of(text, machine)
            assert image.startswith(_ELF), "no object"
            assert image[_MACHINE] == _AARCH64, "an object of another machine"
    print(launches, len(texts), native.target().cpu)


if __name__ == "__main__":
    main()
