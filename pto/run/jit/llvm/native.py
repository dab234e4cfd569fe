"""LLVM text to code in memory: target, passes, object, link. It knows nothing of PTO."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache as once
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm

from pto.core import disk_cache as cache
from pto.core.errors import fail

# Levels of LLVM's passes and of its code generator. O3 compiles three times as long as O1 for the
# same speed (measured).
_OPTIMISED: Final = 1, 2
_PLAIN: Final = 0, 0
_KEPT: Final = 32  # programs that stay linked after their last kernel is gone
_lock = threading.RLock()  # LLVM's own state is shared
# Values of PTO_JIT_CPU: a CPU of LLVM, and the features it requires. All levels give the same
# bits.
_LEVELS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "native": ("", ()),
    "baseline": ("x86-64", ()),
    "avx2": ("x86-64-v3", ("avx2", "fma", "f16c")),
    "avx512": ("x86-64-v4", ("avx512f", "avx512bw", "avx512dq", "avx512vl")),
}


class Code:
    """Linked functions; they go when this object goes, with the last kernel that has them."""

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker

    def address(self, name: str) -> int:
        return self._tracker[name]


class Target:
    """The machine code is made for."""

    optimises = True  # False for tests: LLVM compiles twice as fast

    def __init__(self, level: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        host = llvm.get_host_cpu_features()
        self.cpu, _ = _level(level, host)
        self.features = ""
        if level == "native":
            self.cpu, self.features = llvm.get_host_cpu_name(), host.flatten()
        # whether loads and stores under a mask are instructions, not branches
        self.has_masks = level in ("native", "avx512") and bool(host.get("avx512vl"))
        # whether four products of bytes are added to a word at once
        self.has_byte_products = level == "native" and bool(host.get("avx512vnni"))
        # whether f16 and f32 are converted by instructions, not by calls of a C library
        has = host.get("f16c", False) or not host.get("sse2", False)
        self.has_half = level != "baseline" and has
        self.triple = llvm.get_process_triple()
        given = {"cpu": self.cpu, "features": self.features, "jit": True}
        self._make = partial(llvm.Target.from_triple(self.triple).create_target_machine, **given)
        self._machines: dict[bool, Any] = {}  # by `optimises`
        self._jit: Any = None
        self._linked = WeakValueDictionary[str, Code]()
        self._recent = deque[Code](maxlen=_KEPT)
        self._count = 0

    @property
    def machine(self) -> Any:
        """LLVM's target machine, at the level of its code generator."""
        found = self._machines.get(self.optimises)
        if found is None:
            _, level = _OPTIMISED if self.optimises else _PLAIN
            found = self._machines[self.optimises] = self._make(opt=level)
        return found

    def code(self, text: str, names: list[str]) -> Code:
        """The functions of a module of LLVM text, from the cache where it is known."""
        version = f"{llvmlite.__version__} {llvm.llvm_version_info}"
        name = cache.key(text, self.cpu, self.features, self.triple, version, str(self.optimises))
        with _lock:
            found = self._linked.get(name)
            if found is None:
                found = self._cached(name, names) or self._made(name, text, names)
                self._linked[name] = found
            self._recent.append(found)
            return found

    def _cached(self, name: str, names: list[str]) -> Code | None:
        """The object of an earlier run; one that cannot be linked is discarded."""
        image = cache.load(name)
        if image is None:
            return None
        try:
            return self._link(image, names)
        except RuntimeError:
            cache.discard(name)
            return None

    def _made(self, name: str, text: str, names: list[str]) -> Code:
        image = object_of(text, self.machine)
        cache.store(name, image)
        return self._link(image, names)

    def _link(self, image: bytes, names: list[str]) -> Code:
        if self._jit is None:
            self._jit = llvm.create_lljit_compiler(self.machine)
        library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for name in names:
            library.export_symbol(name)
        self._count += 1
        return Code(library.link(self._jit, f"pto{self._count}"))


def _level(level: str, host: Mapping[str, bool]) -> tuple[str, tuple[str, ...]]:
    found = _LEVELS.get(level)
    if found is None:
        known = ", ".join(_LEVELS)
        raise fail("PTO-U090", f"PTO_JIT_CPU={level} names no target; there is {known}")
    missing = [name for name in found[1] if not host.get(name)]
    if missing:
        raise fail("PTO-U090", f"PTO_JIT_CPU={level}: this processor has no {', '.join(missing)}")
    return found


def object_of(text: str, machine: Any) -> bytes:
    """The object file of a module of LLVM text."""
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = machine.triple
    passes, _ = _OPTIMISED if Target.optimises else _PLAIN
    options = llvm.create_pipeline_tuning_options(speed_level=passes)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


@once
def target() -> Target:
    """PTO_JIT_CPU: native (default), avx512, avx2 or baseline."""
    return Target(os.environ.get("PTO_JIT_CPU") or "native")


def _caller(result: Any, *kinds: Any) -> Callable[[int], Any]:
    """Makes a Python function of a machine address; the GIL is not held inside."""
    return ctypes.CFUNCTYPE(result, *kinds)


_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
# int f(context, frame)
function: Final = _caller(ctypes.c_int, _POINTER, _POINTER)
# int64 f(context, frame, int64, int64, pointer)
rounds: Final = _caller(_NUMBER, _POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER)
# pointer f(context, frame, memory, capacity)
coroutine: Final = _caller(_POINTER, _POINTER, _POINTER, _POINTER, _NUMBER)
# int64 f(agents, count, resets, many, block, end)
blocks: Final = _caller(_NUMBER, _POINTER, _NUMBER, _POINTER, *[_NUMBER] * 3)
