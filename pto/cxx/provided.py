"""Names that a kernel gets without declaring them, by architecture, with the source of each fact.

The device compiler predefines macros and functions, builds pass options, and headers of the SDK and
of the library declare the rest. The header tree, the compiler's options, the messages about missing
names and the table of the guide are all made from the rows here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from pto.cxx.register_forms import by_name, words
from pto.isa.vector.intrinsics import intrinsics

_NPU = ("a2a3", "a5")
_ALL = ("cpu", *_NPU)
COMPILER = "device compiler"
OPTION = "build option"
LIBRARY = "library header"
SDK = "SDK header"


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro that sources test: its value for each profile; undefined on other profiles."""

    name: str
    origin: str
    cite: str
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    side: str = ""  # defined only in the build of this side


@dataclass(frozen=True, slots=True)
class Name:
    """Functions, constants or types, and the C++ text that declares them here."""

    names: str
    origin: str
    cite: str
    text: str
    profiles: tuple[str, ...] = _NPU


@dataclass(frozen=True, slots=True)
class Missing:
    """Names that kernels use but that are not provided here, and the reason."""

    examples: str
    pattern: str
    origin: str
    reason: str


def _on(value: str = "1", *profiles: str) -> dict[str, str]:
    return dict.fromkeys(profiles or _NPU, value)


def _kib(size: int) -> str:
    return f"({size}u * 1024u)"


_BUFFERS = (
    ("UBUF", 192, 256),
    ("CBUF", 512, 512),
    ("L0A", 64, 64),
    ("L0B", 64, 64),
    ("L0C", 128, 256),
)
CORES = {"a2a3": "dav-c220", "a5": "dav-c310"}  # options of the device compiler
_ARCH = "--cce-aicore-arch=dav-c220 (a2a3) or dav-c310 (a5)"
_SIDE = "--cce-aicore-arch=dav-c220-{0} or dav-c310-{0}; on cpu pto-isa common/arch_macro.hpp"
_OTHERS = "M200 M200_VEC M300 M310 C100 L510 310R6"
MACROS = (
    Macro("__CCE_AICORE__", COMPILER, _ARCH, {"a2a3": "220", "a5": "310"}),
    Macro(
        "__NPU_ARCH__",
        COMPILER,
        f"{_ARCH}; pto-isa common/arch_macro.hpp reads 2201 and 3101",
        {"a2a3": "2201", "a5": "3101"},
    ),
    Macro("__DAV_C220__", COMPILER, _ARCH, _on("1", "a2a3")),
    Macro(
        "__DAV_C310__",
        COMPILER,
        f"{_ARCH}; asc-devkit passes -D__DAV_C310__ (cmake/asc/legacy_modules/bisheng_intf.cmake)",
        _on("1", "a5"),
    ),
    Macro("__DAV_VEC__", COMPILER, _SIDE.format("vec"), _on("1", *_ALL), "vector"),
    Macro("__DAV_CUBE__", COMPILER, _SIDE.format("cube"), _on("1", *_ALL), "cube"),
    Macro("__DAV_C220_VEC__", COMPILER, "dav-c220-vec", _on("1", "a2a3"), "vector"),
    Macro("__DAV_C220_CUBE__", COMPILER, "dav-c220-cube", _on("1", "a2a3"), "cube"),
    Macro("__DAV_C310_VEC__", COMPILER, "dav-c310-vec", _on("1", "a5"), "vector"),
    Macro("__DAV_C310_CUBE__", COMPILER, "dav-c310-cube", _on("1", "a5"), "cube"),
    Macro("MEMORY_BASE", OPTION, "pto-isa tests/npu/a2a3 CMakeLists.txt", _on("1", "a2a3")),
    Macro("REGISTER_BASE", OPTION, "pto-isa tests/npu/a5 CMakeLists.txt", _on("1", "a5")),
    Macro("PTO_NPU_ARCH_A2A3", LIBRARY, "pto-isa common/arch_macro.hpp", _on("1", "a2a3")),
    Macro("PTO_NPU_ARCH_A5", LIBRARY, "pto-isa common/arch_macro.hpp", _on("1", "a5")),
    Macro("__CPU_SIM", OPTION, "pto-isa tests/cpu CMakeLists.txt", _on("1", "cpu")),
    *(
        Macro(f"PTO_{buffer}_{what}_BYTES", LIBRARY, "pto-isa common/buffer_limits.hpp", values)
        for buffer, a2a3, a5 in _BUFFERS
        for what, values in (("SIZE", {"a2a3": _kib(a2a3), "a5": _kib(a5)}), ("ALIGN", _on("32u")))
    ),
    # Known macros that no build of these profiles defines.
    Macro(
        "__CHECK_FEATURE_AT_PRECOMPILE", OPTION, "first pass of msopgen projects; no kernel build"
    ),
    Macro("__CCE_KT_TEST__", OPTION, "CPU debugging of Ascend C; no kernel build"),
    Macro("__CCE_IS_AICORE__", COMPILER, "Ascend C sources alone test it"),
    Macro(
        "__CCE__", COMPILER, "device pass of a two-pass build; host and kernel are one pass here"
    ),
    Macro("__NPU_DEVICE__", COMPILER, "device pass of -xasc; host and kernel are one pass here"),
    Macro("__NPU_HOST__", COMPILER, "host pass of -xasc; host and kernel are one pass here"),
    Macro("__COSTMODEL", OPTION, "pto-isa tests/costmodel"),
    Macro("__PTO_AUTO__", OPTION, "automatic mode: pass it by -D where the build does"),
    *(Macro(f"__DAV_{name}__", COMPILER, "another architecture") for name in _OTHERS.split()),
    Macro("__linux__", "host", "system of the host"),
)

_META = "(name, ...) static_assert(true)"
NAMES = (
    Name(
        "min, max",
        COMPILER,
        "scalar functions of the device language, of two numbers of any types",
        """
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }""",
    ),
    Name(
        "get_ctrl, set_ctrl, sbitset0, sbitset1",
        COMPILER,
        "the control register, and words with one bit changed",
        """
inline uint64_t get_ctrl()
{
    pto::machine::look(pto::machine::CONTROL, 0, 0, false);
    return uint64_t(pto::machine::now->answer);
}
inline void set_ctrl(uint64_t word) { pto::machine::record("set_ctrl", PTO_HERE, int64_t(word)); }
constexpr uint64_t sbitset0(uint64_t word, int64_t bit) { return word & ~(uint64_t(1) << bit); }
constexpr uint64_t sbitset1(uint64_t word, int64_t bit) { return word | uint64_t(1) << bit; }""",
    ),
    Name(
        "float8_e4m3_t, float8_e5m2_t, float8_e8m0_t, hifloat8_t, float4_e2m1x2_t, float4_e1m2x2_t",
        COMPILER,
        "the compiler for dav-c220 has none of them; kernels for it define their own",
        "",
        ("cpu", "a5"),
    ),
    Name(
        "SYNC_FLAG_ID_MAX",
        LIBRARY,
        "pto-isa common/type.hpp",
        "namespace pto { constexpr uint16_t SYNC_FLAG_ID_MAX = 16; }",
        _ALL,
    ),
    Name(
        "PTO_SYNCALL_AIV_KERNEL_META, PTO_SYNCALL_MIX_AIC_KERNEL_META, PTO_SYNCALL_AIC_KERNEL_META",
        LIBRARY,
        "pto-isa common/kernel_meta.hpp; notes for the loader of the chip",
        f"#define PTO_SYNCALL_AIV_KERNEL_META{_META}\n"
        f"#define PTO_SYNCALL_MIX_AIC_KERNEL_META{_META}\n"
        f"#define PTO_SYNCALL_AIC_KERNEL_META{_META}",
        _ALL,
    ),
    Name(
        "names of namespace pto at global scope",
        LIBRARY,
        "pto-isa npu/a5/TTrans.hpp:19 has a global `using namespace pto;`",
        "using namespace pto;",
        ("a5",),
    ),
)

# Headers that kernels and hosts include: each is redirected to our single header.
HEADERS: Mapping[str, str] = {
    LIBRARY: """pto/common/constants.hpp pto/common/type.hpp pto/common/pto_tile.hpp
 pto/common/utils.hpp pto/common/pto_instr.hpp pto/common/event.hpp pto/common/fifo.hpp
 pto/common/memory.hpp pto/common/arch_macro.hpp pto/common/cpu_stub.hpp
 pto/common/arch_capability.hpp pto/common/fixpipe.hpp pto/common/buffer_limits.hpp
 pto/common/kernel_meta.hpp pto/common/debug.h pto/common/arch_cce_intrinsic.hpp
 pto/comm/pto_comm_inst.hpp pto/comm/comm_types.hpp pto/cpu/tile_offsets.hpp
 pto/cpu/MXTypes.hpp common/pto_instr.hpp common/pto_tile.hpp common/constants.hpp""",
    SDK: """acl/acl.h acl/acl_rt.h acl.h runtime/rt.h runtime/kernel.h runtime/rt_ffts.h
 hccl/hccl.h hccl/hccl_comm.h hccl/hccl_types.h""",
}

MISSING = (
    Missing(
        "LocalTensor, TQue, DataCopy",
        r"AscendC|LocalTensor|TPipe<|TQue|TBuf|DataCopy|KERNEL_TASK_TYPE\w*",
        "SDK header kernel_operator.h",
        "classes of Ascend C are another programming model, which this machine does not run",
    ),
    Missing(
        "torch, at",
        r"torch\w*|at|ATen|c10",
        "PyTorch",
        "host code for PyTorch is not built; compile the file of the kernel alone",
    ),
    Missing(
        "vadd_f16, vbr",
        r"v(?!ector_)[a-z]{2,8}_(?:f16|f32|s16|s32|f162\w+|s\w+2\w+)|vbr\w*|vtranspose\w*",
        "device compiler, intrinsics with repeats (a2a3)",
        "instructions below tiles with a mask register and repeats are not recorded",
    ),
    Missing(
        "vag_b32, vabsdif, movp_b16, vunpack",
        r"vag_b\d+|vector_address|AddrReg|vabsdif|vmod|vunpack|movp_b\d+|movvp|pmov|vpd_b\d+"
        r"|v(?:ld|lda|ldu|st|sta|stu)|p(?:ld|st)|vcvt_\w*s4\w*",
        "device compiler, vector registers (a5)",
        "the instruction has no row, or its address counts the loops around it, which C++ does not"
        " show: use the form with an offset (vlds, vsts)",
    ),
    Missing(
        "__simt_vf__, LAUNCH_BOUND",
        r"__simt_\w*|LAUNCH_BOUND|threadIdx|blockDim|cce::async_invoke",
        "device compiler, SIMT functions (a5)",
        "functions of work items are not recorded",
    ),
)


def header_names() -> list[str]:
    """Every header name that is redirected to our single header."""
    return " ".join(HEADERS.values()).split()


def side_options(profile: str, side: str) -> list[str]:
    """Compiler options that define the macros of one side of a core."""
    wanted = ("vector", "cube") if profile == "cpu" else (side,)
    number = {"both": 0, "vector": 1, "cube": 2}[side]
    return [
        f"-DPTO_MACHINE_SIDE={number}",
        *(
            f"-D{m.name}={value}"
            for m in MACROS
            if m.side in wanted and (value := m.values.get(profile)) is not None
        ),
    ]


_NUMBERS = {"cpu": 1, "a2a3": 2, "a5": 5}  # PTO_MACHINE_PROFILE


def profile_number(profile: str) -> int:
    """The number of a profile in the headers."""
    return _NUMBERS[profile]


def profiles() -> tuple[str, ...]:
    """Profiles that C++ kernels are built for."""
    return tuple(_NUMBERS)


def macros_text() -> str:
    """`target.hpp`: the macros of each profile that do not depend on the side."""
    lines = ["// Generated from the table of provided names.", "#pragma once"]
    for name, number in _NUMBERS.items():
        lines.append(f"#if PTO_MACHINE_PROFILE == {number}")
        for macro in MACROS:
            if not macro.side and name in macro.values:
                lines.append(f"#define {macro.name} {macro.values[name]}")
        lines.append("#endif")
    return "\n".join([*lines, ""])


def names_text() -> str:
    """`names.hpp`: functions and constants that the device compiler and headers declare."""
    lines = ["// Generated from the table of provided names.", "#pragma once"]
    for row in NAMES:
        wanted = " || ".join(f"PTO_MACHINE_PROFILE == {_NUMBERS[p]}" for p in row.profiles)
        lines += [f"#if {wanted}", row.text.strip(), "#endif"]
    return "\n".join([*lines, ""])


_VECTORS = "device compiler, vector registers"
_VECTOR_TYPES = """vector_u8 vector_s8 vector_u16 vector_s16 vector_u32 vector_s32 vector_u64
 vector_s64 vector_f16 vector_bf16 vector_f32 vector_f8e4m3 vector_f8e5m2 vector_f8e8m0 vector_hif8
 vector_f4e2m1x2 vector_f4e1m2x2 vector_bool vector_align __VEC_SCOPE__ RegTensor MaskReg UnalignReg
 CreatePredicate PSetWithType DistVST CCE_VL TypeGet"""


def _vectors() -> Iterator[tuple[str, str]]:
    """Names of vector registers, each with its source."""
    library = "pto-isa include/pto/npu/a5 (common.hpp, datatype.hpp, utils.hpp)"
    yield from ((name, library) for name in _VECTOR_TYPES.split())
    for row, source in intrinsics():
        names = (name for name, forms in by_name().items() if any(f.row is row for f in forms))
        yield from ((name, source) for name in names)
    yield from ((word, library) for word in words())


@cache
def _rows() -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """Every provided name: its origin, its source, and its profiles."""
    entries = {m.name: (m.origin, m.cite, tuple(m.values)) for m in MACROS}
    entries |= {name: (_VECTORS, source, ("a5",)) for name, source in _vectors()}
    for row in NAMES:
        entries |= dict.fromkeys(row.names.split(", "), (row.origin, row.cite, row.profiles))
    return entries


def provider(name: str) -> str | None:
    """A sentence with the origin of a name, or the reason why it is missing; None if unknown."""
    row = _rows().get(name)
    if row is not None:
        origin, cite, where = row
        places = " and ".join(where) or "no profile here"
        return f"`{name}` is provided on {places} by the {origin} ({cite})"
    short = name.rpartition("::")[2]
    for missing in MISSING:
        if re.fullmatch(missing.pattern, name) or re.fullmatch(missing.pattern, short):
            return f"`{name}` is provided by the {missing.origin}: {missing.reason}"
    return None


def known_macros() -> frozenset[str]:
    """Macros in the table, including those that are undefined on some profiles."""
    return frozenset(m.name for m in MACROS)


def _code(names: str) -> str:
    """Names as code; a description in words stays as it is."""
    return names if "names of" in names else ", ".join(f"`{n}`" for n in names.split(", "))


def table() -> Iterator[tuple[str, str, str, str]]:
    """Rows for the guide: name, profiles, origin, source."""
    for m in MACROS:
        where = ", ".join(f"{p}: {v}" if v != "1" else p for p, v in m.values.items())
        side = f" ({m.side} side)" if m.side else ""
        yield f"`{m.name}`{side}", where or "not defined", m.origin, m.cite
    for row in NAMES:
        yield _code(row.names), ", ".join(row.profiles), row.origin, row.cite
    sources: dict[str, list[str]] = {}
    for name, source in _vectors():
        sources.setdefault(source, []).append(name)
    for source, vectors in sources.items():
        yield _code(", ".join(vectors)), "a5", _VECTORS, source
    for origin, names in HEADERS.items():
        yield _code(", ".join(names.split())), ", ".join(_ALL), origin, "one header here"
    for missing in MISSING:
        yield _code(missing.examples), "missing", missing.origin, missing.reason
