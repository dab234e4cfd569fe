"""LLVM text to code in memory: target, passes, object, link. Knows nothing of PTO."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache as once
from typing import Any, Final

import llvmlite
import llvmlite.binding as llvm

from pto.core.errors import fail
from pto.run.jit import cache

_PASSES: Final = 1  # O1: O3 compiles three times as long for the same speed (measured)
_CODEGEN: Final = 2
_lock = threading.RLock()  # LLVM's own state is shared
# What PTO_JIT_CPU may be beside the name of a CPU: levels that every x86-64 machine can be asked
# for. All give the same bits.
_LEVELS: Final = {
    "native": ("", ""),
    "baseline": ("x86-64", ""),
    "avx2": ("x86-64-v3", ""),
    "avx512": ("x86-64-v4", ""),
}


class Code:
    """Linked functions; they go when this object goes."""

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker

    def address(self, name: str) -> int:
        return self._tracker[name]


class Target:
    """The machine code is made for."""

    def __init__(self, level: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        if level == "native":
            self.cpu = llvm.get_host_cpu_name()
            self.features = llvm.get_host_cpu_features().flatten()
        else:
            self.cpu, self.features = _LEVELS.get(level, (level, ""))
        self.triple = llvm.get_process_triple()
        self.machine = _machine(self.triple, self.cpu, self.features)
        self._jit: Any = None
        self._linked: dict[str, Code] = {}
        self._count = 0

    def code(self, text: str, names: list[str]) -> Code:
        """The functions of a module of LLVM text, from the cache where it is known."""
        version = f"{llvmlite.__version__} {llvm.llvm_version_info}"
        name = cache.key(text, self.cpu, self.features, self.triple, version, str(_PASSES))
        with _lock:
            found = self._linked.get(name)
            if found is None:
                image = cache.load(name)
                if image is None:
                    image = object_of(text, self.machine)
                    cache.store(name, image)
                found = self._linked[name] = self._link(image, names)
            return found

    def _link(self, image: bytes, names: list[str]) -> Code:
        if self._jit is None:
            self._jit = llvm.create_lljit_compiler(self.machine)
        library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for name in names:
            library.export_symbol(name)
        self._count += 1
        return Code(library.link(self._jit, f"pto{self._count}"))


def _machine(triple: str, cpu: str, features: str) -> Any:
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=_CODEGEN, jit=True)


def object_of(text: str, machine: Any) -> bytes:
    """The object file of a module of LLVM text."""
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = machine.triple
    options = llvm.create_pipeline_tuning_options(speed_level=_PASSES)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def emit_for(triple: str, text: str) -> bytes:
    """An object for another kind of machine, which is not run here."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return object_of(text, _machine(triple, "", ""))


@once
def target() -> Target:
    """PTO_JIT_CPU: native (default), avx512, avx2, baseline, or the name of a CPU."""
    level = os.environ.get("PTO_JIT_CPU", "native")
    try:
        return Target(level)
    except RuntimeError as error:
        raise fail("PTO-U090", f"PTO_JIT_CPU={level} names no target: {error}") from None


def function(address: int) -> Any:
    """int f(void *context, void *frame); the GIL is not held inside."""
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)
