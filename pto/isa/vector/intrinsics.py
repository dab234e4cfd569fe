"""Instructions that C++ kernels of a5 call by name, and where each name and form is public."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from pto.isa.row.instr import Instr
from pto.isa.table import lookup

_SOURCES: Mapping[str, str] = {
    "pto-isa include/pto/npu/a5": """vabs vneg vexp vln vsqrt vrelu vnot vmov vadd vsub vmul vmax
 vmin vand vor vxor vdiv vshl vshr vaddc vsubc vaddcs vsubcs vadds vmaxs vmins vlrelu vmuls vshls
 vshrs vprelu vexpdif vaxpy vmula vmadd vmull vbitsort vmrgsort4 vcmp vcmps vsel vselr vcvt vtrc
 vlds vldsx2 vgather2 vgatherb vgather2_bc vsts vstsx2 vsstb vscatter vldas vldus vstus vstas vstur
 vstar sprclr vbr vdup vci vcadd vcmax vcmin vcgmax vcpadd vintlv vdintlv vsqz vpack chistv2
 pset_b8 pset_b16 pset_b32 pge_b8 plt_b8 plt_b16 plt_b32 pand por pxor pnot psel ppack punpack
 pintlv_b8 pintlv_b16 pintlv_b32 pdintlv_b8 plds psts mem_bar""",
    "asc-devkit impl/c_api/instr_impl/npu_arch_3510": """vsldb vcgadd vcgmin vusqz vmulscvt dhistv2
 pdintlv_b16 pdintlv_b32 pstu""",
    "asc-devkit impl/basic_api/reg_compute": "pge_b16 pge_b32",
}
# Their distributions are an enumeration of its own in C++, `DistVST`.
_STORES = ("vsts", "vstsx2")


def _row(name: str) -> Instr:
    found = lookup(f"pto.{name}")
    if found is None:
        raise RuntimeError(f"{name} has no row")
    return found


@cache
def intrinsics() -> tuple[tuple[Instr, str], ...]:
    """Each row that is public in C++, with its source."""
    listed = ((name, source) for source, names in _SOURCES.items() for name in names.split())
    return tuple((_row(name), source) for name, source in listed)


def is_store(row: Instr) -> bool:
    """True for a row with a distribution of `DistVST`."""
    return row.mnemonic in _STORES
