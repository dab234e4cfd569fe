# Every instruction. Written by `python -m pto.lang.stubs`: do not edit.
# ruff: noqa
# fmt: off
from collections.abc import Callable
from types import ModuleType

from pto.core.dtypes import DType
from pto.isa.row.types import Type
from pto.lang.call.session import ValueHandle
from pto.lang.values.annotations import Array
from pto.lang.values.elements import Element
from pto.lang.values.registers import Mask, Pointer, Vreg
from pto.lang.values.scalars import Scalar
from pto.lang.values.tiles import Tile

Number = int | float | Scalar[object]
Address = Pointer | Tile | Array
Logical = ValueHandle | Number
Kind = type[Element] | DType | Type | ValueHandle | str  # the type of a result

__all__ = ["tadd", "tsub", "tmul", "tdiv", "tmax", "tmin", "trem", "tfmod", "tpow", "tprelu", "tabs", "tneg", "trelu", "texp", "tlog", "tsqrt", "trecip", "trsqrt", "tadds", "tsubs", "tmaxs", "tmins", "tmuls", "tdivs", "trems", "tfmods", "tpows", "tlrelu", "texpands", "tand", "tor", "txor", "tshl", "tshr", "tnot", "tands", "tors", "txors", "tshls", "tshrs", "taddc", "tsubc", "taddsc", "tsubsc", "taxpy", "tfusedmuladd", "tfusedmuladdrelu", "tmuladddst", "taddrelu", "tsubrelu", "taddreluconv", "tsubreluconv", "tadddeqrelu", "tcmp", "tcmps", "tsel", "tsels", "tcvt", "tpack", "tquant", "tdequant", "tquant_mx", "trowsum", "trowprod", "trowmax", "trowmin", "trowargmax", "trowargmin", "tpairreducesum", "tcolsum", "tcolprod", "tcolmax", "tcolmin", "tcolargmax", "tcolargmin", "trowexpand", "tcolexpand", "trowexpandadd", "trowexpandsub", "trowexpandmul", "trowexpandmax", "trowexpandmin", "trowexpanddiv", "trowexpandexpdif", "tcolexpandadd", "tcolexpandsub", "tcolexpandmul", "tcolexpandmax", "tcolexpandmin", "tcolexpanddiv", "tcolexpandexpdif", "tpartadd", "tpartmul", "tpartmax", "tpartmin", "tpartargmax", "tpartargmin", "tsort32", "tmrgsort", "thistogram", "tgather", "tgatherb", "tscatter", "mgather", "mscatter", "tci", "ttri", "trandom", "tload", "tprefetch", "tprefetch_async", "make_prefetch_async_context", "get_prefetch_async_session", "tstore", "tstore_fp", "tmov", "tmov_fp", "tfillpad", "tfillpad_expand", "tfillpad_inplace", "treshape", "ttrans", "tconcat", "tconcatidx", "tinterleave", "tdeinterleave", "textract", "textract_fp", "tinsert", "tinsert_fp", "timg2col", "setfmatrix", "set_img2col_rpt", "set_img2col_padding", "ttrans_conv", "tload_conv", "tmatmul", "tmatmul_acc", "tmatmul_bias", "tmatmul_mx", "tmatmul_mx_acc", "tmatmul_mx_bias", "tgemv", "tgemv_acc", "tgemv_bias", "tgemv_mx", "tgemv_mx_acc", "tgemv_mx_bias", "tpush", "tpop", "talloc", "tfree", "talloc_to_aiv", "tpush_to_aiv", "talloc_to_aic", "tpush_to_aic", "tpop_from_aic", "tfree_from_aic", "tpop_from_aiv", "tfree_from_aiv", "tsync", "syncall", "tassign", "tsubview", "talias", "tget_scale_addr", "sethf32mode", "settf32mode", "set_quant_scalar", "set_quant_vector", "tprint", "tgetval", "tsetval", "comm_tput", "comm_tget", "comm_build_async_session", "comm_tput_async", "comm_tget_async", "comm_wait_async_event", "comm_test_async_event", "comm_tnotify", "comm_twait", "comm_ttest", "comm_tbroadcast", "comm_tgather", "comm_tscatter", "comm_treduce", "addptr", "castptr", "ptrtoint", "inttoptr", "get_tensor_view_dim", "get_tensor_view_stride", "tensor_view_addr", "declare_global", "alloc_multi_tile", "multi_tile_get", "declare_tile", "tile_valid_rows", "tile_valid_cols", "get_validshape", "bitcast", "tile_buf_addr", "bind_tile", "materialize_tile", "pointer_cast", "declare_tile_memref", "simd_tile_to_memref", "set_flag", "wait_flag", "set_flag_dyn", "wait_flag_dyn", "record_event", "wait_event", "barrier", "barrier_sync", "mem_bar", "get_buf", "rls_buf", "get_buf_dyn", "rls_buf_dyn", "declare_eventid_array", "eventid_array_get", "eventid_array_set", "cmo_cacheinvalid", "dcci", "fence_barrier_all", "dsb", "sync_set", "sync_wait", "set_cross_core", "wait_flag_dev", "set_intra_block", "wait_intra_block", "set_cross_block", "wait_cross_block", "set_ffts", "aic_initialize_pipe", "aiv_initialize_pipe", "initialize_l2g2l_pipe", "initialize_l2l_pipe", "reserve_buffer", "import_reserved_buffer", "get_block_idx", "get_subblock_idx", "get_block_num", "get_subblock_num", "get_vms4_sr", "load_scalar", "store_scalar", "ld_dev", "st_dev", "declare_local_array", "local_array_get", "local_array_set", "get_ctrl", "set_ctrl", "sbitset0", "sbitset1", "trap", "declare_struct", "struct_get", "struct_set", "vlds", "vldsx2", "vsldb", "vgather2", "vgatherb", "vgather2_bc", "vsld", "vsts", "vstsx2", "vsstb", "vscatter", "vsst", "vldas", "vldus", "uvld", "init_align", "sprsti", "sprsts", "sprclr", "vstas", "vstar", "vsta", "vstus", "vstur", "vstu", "vbr", "vdup", "vci", "vabs", "vneg", "vexp", "vln", "vsqrt", "vrelu", "vnot", "vrec", "vrsqrt", "vbcnt", "vcls", "vmov", "vadd", "vsub", "vmul", "vmax", "vmin", "vand", "vxor", "vdiv", "vor", "vshl", "vshr", "vaddc", "vsubc", "vaddcs", "vsubcs", "vadds", "vmaxs", "vmins", "vlrelu", "vmuls", "vshls", "vshrs", "vsubs", "vands", "vors", "vxors", "vcmp", "vcmps", "vsel", "vselr", "vselrv2", "vcvt", "vtrc", "vbitcast", "vcadd", "vcmax", "vcmin", "vcbmax", "vcbmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd", "vintlv", "vdintlv", "vintlvv2", "vdintlvv2", "vsqz", "vusqz", "vpack", "vsunpack", "vzunpack", "vslide", "vshift", "vperm", "vprelu", "vexpdif", "vaxpy", "vmula", "vmadd", "vmulscvt", "vmull", "vaddrelu", "vsubrelu", "vaddreluconv", "vmulconv", "vbitsort", "vmrgsort4", "vsort32", "vtranspose", "chistv2", "dhistv2", "vmi_vchist", "vmi_vdhist", "pset_b8", "pge_b8", "plt_b8", "pltm_b8", "pset_b16", "pge_b16", "plt_b16", "pltm_b16", "pset_b32", "pge_b32", "plt_b32", "pltm_b32", "pand", "por", "pxor", "psel", "pnot", "pintlv_b8", "pdintlv_b8", "pintlv_b16", "pdintlv_b16", "pintlv_b32", "pdintlv_b32", "ppack", "punpack", "pbitcast", "plds", "pldi", "psts", "psti", "pld", "pst", "pstu", "ub_vadd", "ub_vsub", "ub_vmul", "ub_vdiv", "ub_vmax", "ub_vmin", "ub_vand", "ub_vor", "ub_vaddrelu", "ub_vnot", "ub_vabs", "ub_vrelu", "ub_vexp", "ub_vln", "ub_vsqrt", "ub_vrsqrt", "ub_vadds", "ub_vmuls", "ub_vmaxs", "ub_vmins", "ub_vshl", "ub_vshr", "ub_vdup", "ub_set_mask", "ub_set_mask_count", "ub_set_mask_norm", "vmi_vabs", "vmi_vneg", "vmi_vrelu", "vmi_vexp", "vmi_vln", "vmi_vsqrt", "vmi_vnot", "vmi_vadd", "vmi_vsub", "vmi_vmul", "vmi_vdiv", "vmi_vmax", "vmi_vmin", "vmi_vshl", "vmi_vshr", "vmi_vand", "vmi_vor", "vmi_vxor", "vmi_shrsi", "vmi_shrui", "vmi_vadds", "vmi_vmuls", "vmi_vmaxs", "vmi_vmins", "vmi_vshls", "vmi_vshrs", "vmi_vmula", "vmi_vprelu", "vmi_fma", "vmi_vaxpy", "vmi_vlrelu", "vmi_vexpdif", "vmi_vmull", "vmi_vaddc", "vmi_vaddcs", "vmi_vcmp", "vmi_vcmps", "vmi_cmpf", "vmi_cmpi", "vmi_vsel", "vmi_vbrc", "vmi_vci", "vmi_constant", "vmi_create_mask", "vmi_create_group_mask", "vmi_pset", "vmi_pge", "vmi_plt", "vmi_constant_mask", "vmi_vcadd", "vmi_vcmax", "vmi_vcmin", "vmi_ensure_layout", "vmi_ensure_mask_layout", "vmi_ensure_mask_granularity", "vmi_pack", "vmi_unpack", "vmi_vintlv", "vmi_vdintlv", "vmi_vselr", "vmi_shuffle", "vmi_channel_split", "vmi_channel_merge", "vmi_compress", "vmi_active_prefix_index", "vmi_vcvt", "vmi_extsi", "vmi_sitofp", "vmi_fptosi", "vmi_extui", "vmi_fptoui", "vmi_vinterpret_cast", "vmi_vload", "vmi_vstore", "vmi_vsstb", "vmi_vgather", "vmi_vgatherb", "vmi_vscatter", "vmi_group_load", "vmi_group_slot_load", "vmi_group_broadcast_load", "vmi_group_store", "vmi_masked_load", "vmi_expand_load", "vmi_gather", "vmi_scatter", "vmi_compress_store", "vmi_stride_load", "vmi_stride_store", "vmi_deinterleave_load", "vmi_interleave_store", "mte_gm_ub", "mte_ub_gm", "mte_ub_ub", "mte_ub_l1", "copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_ubuf_to_ubuf", "copy_ubuf_to_cbuf", "copy_cbuf_to_ubuf", "set_loop_size_outtoub", "set_loop1_stride_outtoub", "set_loop2_stride_outtoub", "set_loop_size_ubtoout", "set_loop1_stride_ubtoout", "set_loop2_stride_ubtoout", "set_loop_size_outtol1", "set_loop1_stride_outtol1", "set_loop2_stride_outtol1", "set_pad_val_outtol1", "set_mte2_nz_para", "set_quant_pre", "set_relu_alpha", "set_fix_clip_relu", "set_fpc", "set_loop3_para", "set_channel_para", "set_mov_pad_val", "set_atomic_f32", "set_atomic_f16", "set_atomic_s16", "set_atomic_s32", "set_atomic_s8", "set_atomic_bf16", "set_atomic_none", "set_atomic_add", "set_atomic_max", "set_atomic_min", "raw_fill_l1", "mte_gm_l1", "mte_l1_ub", "mte_gm_l1_frac", "mte_l1_l0a", "mte_l1_l0b", "mte_l1_l0a_mx", "mte_l1_l0b_mx", "mte_l1_bt", "mte_l1_fb", "copy_gm_to_cbuf", "copy_gm_to_cbuf_multi_nd2nz", "copy_gm_to_cbuf_multi_dn2nz", "copy_cbuf_to_bt", "copy_cbuf_to_fbuf", "load_cbuf_to_ca_s4", "load_cbuf_to_cb_s4", "load_cbuf_to_ca", "load_cbuf_to_cb", "load_cbuf_to_ca_mx", "load_cbuf_to_cb_mx", "mad", "mad_acc", "mad_bias", "mad_mx", "mad_mx_acc", "mad_mx_bias", "mad_raw", "mad_bias_raw", "mad_mx_raw", "mad_mx_bias_raw", "mte_l0c_l1", "mte_l0c_gm", "mte_l0c_ub", "copy_matrix_cc_to_gm", "copy_matrix_cc_to_cbuf", "copy_matrix_cc_to_ub"]

def tadd(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 + src1"""
def tsub(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 - src1"""
def tmul(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 * src1"""
def tdiv(dst: Tile, src0: Tile, src1: Tile, *, precisionType: str | int | None = None) -> None:
    """dst = src0 / src1, integers toward zero"""
def tmax(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = max(src0, src1)"""
def tmin(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = min(src0, src1)"""
def trem(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, precisionType: str | int | None = None) -> None:
    """dst = src0 - floor(src0 / src1) * src1: the sign of src1"""
def tfmod(dst: Tile, src0: Tile, src1: Tile, *, precisionType: str | int | None = None) -> None:
    """dst = src0 - trunc(src0 / src1) * src1: the sign of src0"""
def tpow(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, precisionType: str | int | None = None) -> None:
    """dst = src0 ** src1"""
def tprelu(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None) -> None:
    """dst = src0 if src0 > 0 else src0 * src1"""
def tabs(dst: Tile, src: Tile) -> None:
    """dst = |src|"""
def tneg(dst: Tile, src: Tile) -> None:
    """dst = -src"""
def trelu(dst: Tile, src: Tile) -> None:
    """dst = max(src, 0)"""
def texp(dst: Tile, src: Tile, *, precisionType: str | int | None = None) -> None:
    """dst = e ** src"""
def tlog(dst: Tile, src: Tile, *, precisionType: str | int | None = None) -> None:
    """dst = ln(src)"""
def tsqrt(dst: Tile, src: Tile, *, precisionType: str | int | None = None) -> None:
    """dst = sqrt(src)"""
def trecip(dst: Tile, src: Tile, *, precisionType: str | int | None = None) -> None:
    """dst = 1 / src"""
def trsqrt(dst: Tile, src: Tile, tmp: Tile | None = None, *, precisionType: str | int | None = None) -> None:
    """dst = 1 / sqrt(src)"""
def tadds(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = src + scalar"""
def tsubs(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = src - scalar"""
def tmaxs(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = max(src, scalar)"""
def tmins(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = min(src, scalar)"""
def tmuls(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = src * scalar"""
def tdivs(dst: Tile, src: Tile | Number, scalar: Tile | Number, *, precisionType: str | int | None = None) -> None:
    """dst = src / scalar in the order written: a tile by a scalar, or a scalar by a tile"""
def trems(dst: Tile, src: Tile, scalar: Number, tmp: Tile | None = None) -> None:
    """dst = src - floor(src / scalar) * scalar: the sign of scalar"""
def tfmods(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = src - trunc(src / scalar) * scalar: the sign of src"""
def tpows(dst: Tile, src: Tile, scalar: Number, tmp: Tile | None = None, *, precisionType: str | int | None = None) -> None:
    """dst = src ** scalar"""
def tlrelu(dst: Tile, src: Tile, slope: Number) -> None:
    """dst = src if src > 0 else src * slope"""
def texpands(dst: Tile, scalar: Number) -> None:
    """dst = scalar"""
def tand(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 & src1"""
def tor(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 | src1"""
def txor(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None) -> None:
    """dst = src0 ^ src1"""
def tshl(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 << src1"""
def tshr(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 >> src1, arithmetic for signed types, logical for unsigned ones"""
def tnot(dst: Tile, src: Tile) -> None:
    """dst = ~src"""
def tands(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = src & scalar"""
def tors(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = src | scalar"""
def txors(dst: Tile, src: Tile, scalar: Number, tmp: Tile | None = None) -> None:
    """dst = src ^ scalar"""
def tshls(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = src << scalar"""
def tshrs(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = src >> scalar, arithmetic for signed types, logical for unsigned ones"""
def taddc(dst: Tile, src0: Tile, src1: Tile, src2: Tile) -> None:
    """dst = src0 + src1 + src2"""
def tsubc(dst: Tile, src0: Tile, src1: Tile, src2: Tile) -> None:
    """dst = src0 - src1 + src2"""
def taddsc(dst: Tile, src0: Tile, scalar: Number, src1: Tile) -> None:
    """dst = src0 + scalar + src1"""
def tsubsc(dst: Tile, src0: Tile, scalar: Number, src1: Tile) -> None:
    """dst = src0 - scalar + src1"""
def taxpy(dst: Tile, src: Tile, scalar: Number) -> None:
    """dst = dst + src * scalar"""
def tfusedmuladd(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 * dst + src1"""
def tfusedmuladdrelu(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = max(0, src0 * dst + src1)"""
def tmuladddst(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 * src1 + dst"""
def taddrelu(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = max(0, src0 + src1)"""
def tsubrelu(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = max(0, src0 - src1)"""
def taddreluconv(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = convert(max(0, src0 + src1))"""
def tsubreluconv(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = convert(max(0, src0 - src1))"""
def tadddeqrelu(dst: Tile, src0: Tile, src1: Tile, deqScale: Number, tmp: Tile | None = None) -> None:
    """dst = max(0, f16(deqScale * f32(src0 + src1)))"""
def tcmp(dst: Tile, src0: Tile, src1: Tile, *, cmpMode: str | int | None = None) -> None:
    """bit (i,j) of dst = src0 cmpMode src1"""
def tcmps(dst: Tile, src: Tile, scalar: Tile | Number, *, cmpMode: str | int | None = None) -> None:
    """bit (i,j) of dst = src cmpMode scalar"""
def tsel(dst: Tile, mask: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None) -> None:
    """dst = src0 where mask else src1"""
def tsels(dst: Tile, mask: Tile, src: Tile, scalar: Number, tmp: Tile | None = None) -> None:
    """dst = src where mask else scalar"""
def tcvt(dst: Tile, src: Tile, tmp: Tile | None = None, *, rmode: str | int | None = None, satmode: str | int | None = None) -> None:
    """dst = src rounded by rmode and, by satmode, clamped to dst's range or cut to its low bits"""
def tpack(dst: Tile, src: Tile) -> None:
    """dst = src packed into narrower elements: its low bits"""
def tquant(dst: Tile, src: Tile, fp: Tile, quant_type: str | int, tmp: Tile | None = None, offset: Tile | None = None) -> None:
    """INT8_SYM: dst = clamp(rint(src * fp[i]), -128, 127); INT8_ASYM: dst = clamp(rint(src * fp[i] + offset[i]), 0, 255)"""
def tdequant(dst: Tile, src: Tile, scale: Tile, offset: Tile) -> None:
    """dst = (f32(src) - offset[i]) * scale[i]"""
def tquant_mx(dst: Tile, exp: Tile, max: Tile, scaling: Tile, src: Tile, quant_type: str | int, exp_zz: Tile | None = None, *, quantScaleAlg: str | int | None = None, grpAxis: str | int | None = None, interleave: bool | None = None, storeMode: str | int | None = None) -> None:
    """exp = e8m0 of max|src| in the group; dst = encode(src * 2**(127 - exp))"""
def trowsum(dst: Tile, src: Tile, tmp: Tile | None = None) -> None:
    """dst[i,0] = sum over j of src[i,j]"""
def trowprod(dst: Tile, src: Tile, tmp: Tile | None = None) -> None:
    """dst[i,0] = product over j of src[i,j]"""
def trowmax(dst: Tile, src: Tile, tmp: Tile | None = None) -> None:
    """dst[i,0] = maximum over j of src[i,j]"""
def trowmin(dst: Tile, src: Tile, tmp: Tile | None = None) -> None:
    """dst[i,0] = minimum over j of src[i,j]"""
def trowargmax(dst: Tile, src: Tile, dstVal: Tile | None = None, tmp: Tile | None = None) -> None:
    """dst[i,0] = column of the greatest src[i,j]; dstVal[i,0] = that element"""
def trowargmin(dst: Tile, src: Tile, dstVal: Tile | None = None, tmp: Tile | None = None) -> None:
    """dst[i,0] = column of the least src[i,j]; dstVal[i,0] = that element"""
def tpairreducesum(dst: Tile, src: Tile) -> None:
    """dst[i,k] = src[i,2k] + src[i,2k+1] for k < ceil(C/2), an odd last one + 0; else 0"""
def tcolsum(dst: Tile, src: Tile, tmp: Tile | None = None, *, isBinary: bool | None = None) -> None:
    """dst[0,j] = sum over i of src[i,j]"""
def tcolprod(dst: Tile, src: Tile) -> None:
    """dst[0,j] = product over i of src[i,j]"""
def tcolmax(dst: Tile, src: Tile) -> None:
    """dst[0,j] = maximum over i of src[i,j]"""
def tcolmin(dst: Tile, src: Tile) -> None:
    """dst[0,j] = minimum over i of src[i,j]"""
def tcolargmax(dst: Tile, src: Tile, dstVal: Tile | None = None, tmp: Tile | None = None) -> None:
    """dst[0,j] = row of the greatest src[i,j]; dstVal[0,j] = that element"""
def tcolargmin(dst: Tile, src: Tile, dstVal: Tile | None = None, tmp: Tile | None = None) -> None:
    """dst[0,j] = row of the least src[i,j]; dstVal[0,j] = that element"""
def trowexpand(dst: Tile, src: Tile) -> None:
    """dst[i,j] = src[i,0]"""
def tcolexpand(dst: Tile, src: Tile) -> None:
    """dst[i,j] = src[0,j]"""
def trowexpandadd(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, src1Col: str | int | None = None, src0eqdst: str | int | None = None, highPrecision: str | int | None = None) -> None:
    """dst[i,j] = src0[i,j] + src1[i,0]"""
def trowexpandsub(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, src1Col: str | int | None = None, src0eqdst: str | int | None = None, highPrecision: str | int | None = None) -> None:
    """dst[i,j] = src0[i,j] - src1[i,0]"""
def trowexpandmul(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, src1Col: str | int | None = None, src0eqdst: str | int | None = None, highPrecision: str | int | None = None) -> None:
    """dst[i,j] = src0[i,j] * src1[i,0]"""
def trowexpandmax(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, src1Col: str | int | None = None, src0eqdst: str | int | None = None, highPrecision: str | int | None = None) -> None:
    """dst[i,j] = max(src0[i,j], src1[i,0])"""
def trowexpandmin(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, src1Col: str | int | None = None, src0eqdst: str | int | None = None, highPrecision: str | int | None = None) -> None:
    """dst[i,j] = min(src0[i,j], src1[i,0])"""
def trowexpanddiv(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, precisionType: str | int | None = None, src1Col: str | int | None = None, src0eqdst: str | int | None = None, highPrecision: str | int | None = None) -> None:
    """dst[i,j] = src0[i,j] / src1[i,0]"""
def trowexpandexpdif(dst: Tile, src0: Tile, src1: Tile, tmp: Tile | None = None, *, src1Col: str | int | None = None, src0eqdst: str | int | None = None, highPrecision: str | int | None = None) -> None:
    """dst[i,j] = exp(src0[i,j] - src1[i,0])"""
def tcolexpandadd(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst[i,j] = src0[i,j] + src1[0,j]"""
def tcolexpandsub(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst[i,j] = src0[i,j] - src1[0,j]"""
def tcolexpandmul(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst[i,j] = src0[i,j] * src1[0,j]"""
def tcolexpandmax(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst[i,j] = max(src0[i,j], src1[0,j])"""
def tcolexpandmin(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst[i,j] = min(src0[i,j], src1[0,j])"""
def tcolexpanddiv(dst: Tile, src0: Tile, src1: Tile, *, precisionType: str | int | None = None) -> None:
    """dst[i,j] = src0[i,j] / src1[0,j]"""
def tcolexpandexpdif(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst[i,j] = exp(src0[i,j] - src1[0,j])"""
def tpartadd(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 + src1 where both are valid, else the source that is valid"""
def tpartmul(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = src0 * src1 where both are valid, else the source that is valid"""
def tpartmax(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = max(src0, src1) where both are valid, else the source that is valid"""
def tpartmin(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst = min(src0, src1) where both are valid, else the source that is valid"""
def tpartargmax(dst: Tile, dstIdx: Tile, src0: Tile, src1: Tile, src0Idx: Tile, src1Idx: Tile) -> None:
    """(dst, dstIdx) = (src0, src0Idx) if src0 > src1 else (src1, src1Idx); where one source is valid, its pair"""
def tpartargmin(dst: Tile, dstIdx: Tile, src0: Tile, src1: Tile, src0Idx: Tile, src1Idx: Tile) -> None:
    """(dst, dstIdx) = (src0, src0Idx) if src0 < src1 else (src1, src1Idx); where one source is valid, its pair"""
def tsort32(dst: Tile, src: Tile, idx: Tile, tmp: Tile | None = None) -> None:
    """each 32 columns of a row, as (src, idx) records in descending order of src, to dst"""
def tmrgsort(dsts: list[Tile] | Tile, srcs: list[Tile] | Tile, excuted: Number | None = None, blockLen: Number | None = None, tmp: Tile | None = None, *, exhausted: bool | None = None) -> None:
    """dst = each four runs of blockLen elements of src (or all of the 2 to 4 lists) merged into one descending run; excuted[k] = records taken from list k"""
def thistogram(dst: Tile, src: Tile, idx: Tile, *, isMSB: bool | None = None, byte: int | None = None) -> None:
    """dst[i,b] = how many src[i,j] have a byte <= b and higher bytes equal to idx (a running sum)"""
def tgather(dst: Tile, src: Tile, cdst: Tile | None = None, indices: Tile | None = None, kValue: Number | None = None, tmp: Tile | None = None, *, maskPattern: str | int | None = None, axis: str | None = None, cmpMode: str | int | None = None, offset: int | None = None) -> None:
    """index: dst[i,j] = flat(src)[indices[i,j]]; compare: dst row i = the flat indices (+ offset) of the src[i,j] cmp kValue, cdst[i] = their number; mask: dst row i = the columns the pattern picks"""
def tgatherb(dst: Tile, src: Tile, offsets: Tile) -> None:
    """block b of dst row i = the 32 bytes of src at byte offsets[i,b]"""
def tscatter(dst: Tile, src: Tile, indexes: Tile | None = None, *, maskPattern: str | int | None = None, axis: str | None = None) -> None:
    """flat(dst)[indexes[i,j]] = src[i,j] over indexes' valid region; the last writer wins; mask: the places that the pattern picks get src, those between zeros"""
def mgather(dst: Tile, mem: Array, idx: Tile | Array, scratch: Array | None = None, *, coalesce: str | int | None = None, gatherOob: str | int | None = None) -> None:
    """row: dst[r,:] = mem[idx[r],:]; elem: dst[r,c] = flat(mem)[idx[r,c]]"""
def mscatter(mem: Array, src: Tile, idx: Tile, *, coalesce: str | int | None = None, scatterAtomicOp: str | int | None = None, scatterOob: str | int | None = None, scatterConflict: str | int | None = None) -> None:
    """row: mem[idx[r],:] op= src[r,:]; elem: flat(mem)[idx[r,c]] op= src[r,c]; the last writer wins"""
def tci(dst: Tile, S: Number, tmp: Tile | None = None, *, descending: bool | None = None) -> None:
    """dst[0,j] = S + j, or S - j when descending"""
def ttri(dst: Tile, diagonal: Number, *, upperOrLower: int | None = None) -> None:
    """dst[i,j] = 1 where j <= i + diagonal (lower) or j >= i + diagonal (upper), else 0"""
def trandom(dst: Tile, key0: Number, key1: Number, counter0: Number, counter1: Number, counter2: Number, counter3: Number, *, rounds: int | None = None) -> None:
    """dst[i,4k+w] = word w of Philox4x32(counter + i * n + k, key), n = 64 for each 256 columns but the last, and for those (columns - 1) % 64 + 1"""
def tload(dst: Tile, src: Array, pad_value: Number | None = None, left_padding_num: Number | None = None, right_padding_num: Number | None = None, init_condition: Number | None = None, *, pad_mode: str | int | None = None, init_out_buffer: bool | None = None, layout: str | int | None = None) -> None:
    """dst[r,c] = src element (r,c) over dst's valid region"""
def tprefetch(dst: Tile, src: Array, *, layout: str | int | None = None) -> None:
    """bring src near, a hint: no value changes"""
def tprefetch_async(src: Array, session: object, *, to: Kind | None = None) -> ValueHandle:
    """start bringing src into the L2 cache; no tile is written"""
def make_prefetch_async_context(workspace: Address, *, to: Kind | None = None) -> ValueHandle:
    """ctx = what asynchronous prefetches share, over a workspace in global memory"""
def get_prefetch_async_session(ctx: object, *, to: Kind | None = None) -> ValueHandle:
    """session = the one that events of this context are waited for with"""
def tstore(dst: Array, src: Tile, fp: Tile | None = None, preQuantScalar: Number | None = None, *, stPhase: str | int | None = None, atomicType: str | int | None = None, reluPreMode: str | int | None = None, layout: str | int | None = None) -> None:
    """dst element (r,c) = src[r,c] over src's valid region; combined with memory by atomicType"""
def tstore_fp(dst: Array, src: Tile, fp: Tile, *, atomicType: str | int | None = None, reluPreMode: str | int | None = None, layout: str | int | None = None) -> None:
    """dst element (r,c) = quant(src[r,c], fp[0,c]) over src's valid region"""
def tmov(dst: Tile, src: Tile, fp: Tile | None = None, preQuantScalar: Number | None = None, *, accToVecMode: str | int | None = None, reluPreMode: str | int | None = None, turnPairs: bool | None = None, grpAxis: str | int | None = None) -> None:
    """dst[i,j] = convert(src[i,j]), between the buffers and layouts of the two tile types"""
def tmov_fp(dst: Tile, src: Tile, fp: Tile, *, reluPreMode: str | int | None = None) -> None:
    """dst[i,j] = quant(src[i,j], fp[0,j]); older spelling of tmov with fp"""
def tfillpad(dst: Tile, src: Tile, *, padValue: str | int | None = None) -> None:
    """dst[i,j] = src[i,j] where src is valid, the pad of dst elsewhere"""
def tfillpad_expand(dst: Tile, src: Tile) -> None:
    """as tfillpad, into a dst that may be larger than src"""
def tfillpad_inplace(dst: Tile, src: Tile) -> None:
    """as tfillpad on shared storage: the valid data of src stays, the rest is padded"""
def treshape(src: Tile, *, to: Kind | None = None) -> Tile:
    """result = the bytes of src under another shape, valid region and element type"""
def ttrans(dst: Tile, src: Tile, tmp: Tile | None = None) -> None:
    """dst[i,j] = src[j,i] over the valid region of src"""
def tconcat(dst: Tile, src0: Tile, src1: Tile) -> None:
    """dst[i] = src0[i] followed by src1[i], row by row"""
def tconcatidx(dst: Tile, src0: Tile, src1: Tile, src0Idx: Tile, src1Idx: Tile, dstIdx: Tile | None = None, *, candidates: str | int | None = None) -> None:
    """dst[i] = n0 columns of src0[i], then n1 of src1[i]; n_k = srcKIdx[i,0] / bytes of an index; dstIdx[i,0] = src0Idx[i,0] + src1Idx[i,0]"""
def tinterleave(dst0: Tile, dst1: Tile, src0: Tile, src1: Tile) -> None:
    """each row as the stream src0[0] src1[0] src0[1] ...: dst0 its first half, dst1 its second"""
def tdeinterleave(dst0: Tile, dst1: Tile, src0: Tile, src1: Tile | None = None) -> None:
    """each row as the stream src0, then src1: dst0 its even elements, dst1 its odd ones"""
def textract(dst: Tile, src: Tile, indexRow: Number, indexCol: Number, dst1: Tile | None = None, indexRow1: Number | None = None, indexCol1: Number | None = None, preQuantScalar: Number | None = None, fp: Tile | None = None, *, mode: str | None = None, reluPreMode: str | int | None = None, turnPairs: bool | None = None, accToVecMode: str | int | None = None) -> None:
    """dst[i,j] = src[indexRow+i, indexCol+j] over dst's valid region; dst1 the same at its indices"""
def textract_fp(dst: Tile, src: Tile, fp: Tile, indexRow: Number, indexCol: Number, *, reluPreMode: str | int | None = None, accToVecMode: str | int | None = None) -> None:
    """dst[i,j] = quant(src[indexRow+i, indexCol+j], fp[0, indexCol+j]) over dst's valid region"""
def tinsert(dst: Tile, src: Tile, indexRow: Number, indexCol: Number, fp: Tile | None = None, preQuantScalar: Number | None = None, *, mode: str | None = None, tinsertMode: str | int | None = None, reluPreMode: str | int | None = None, accToVecMode: str | int | None = None) -> None:
    """dst[indexRow+i, indexCol+j] = src[i,j] over src's valid region; the rest of dst stays"""
def tinsert_fp(dst: Tile, src: Tile, fp: Tile, indexRow: Number, indexCol: Number, *, reluPreMode: str | int | None = None, accToVecMode: str | int | None = None) -> None:
    """dst[indexRow+i, indexCol+j] = quant(src[i,j], fp[0,j]) over src's valid region"""
def timg2col(dst: Tile, src: Tile, c1: int, h: int, w: int, posM: Number | None = None, posK: Number | None = None, *, format: str | None = None, n: int | None = None, d: int | None = None, pad_left: int | None = None, pad_right: int | None = None, pad_top: int | None = None, pad_bottom: int | None = None, filter_h: int | None = None, filter_w: int | None = None, stride_h: int | None = None, stride_w: int | None = None, dilation_h: int | None = None, dilation_w: int | None = None, channels: int | None = None, pad_value: int | None = None, fmatrix: str | None = None) -> None:
    """row m = posM+r is (n,d,oh,ow), column k = posK+c is (c1,kh,kw,c0): dst[r,c] = src[n,d,c1, oh*stride_h+kh*dilation_h-pad_top, ow*stride_w+kw*dilation_w-pad_left, c0], pad_value outside"""
def setfmatrix(src: Tile, h: int, w: int, *, pad_left: int | None = None, pad_right: int | None = None, pad_top: int | None = None, pad_bottom: int | None = None, fmatrix: str | None = None) -> None:
    """FMATRIX register = size and padding of the feature map"""
def set_img2col_rpt(src: Tile, *, repeat_stride: int | None = None, repeat_time: int | None = None, repeat_mode: int | None = None, dst_stride: int | None = None, fmatrix: str | None = None) -> None:
    """repeat register = how often and how far apart timg2col repeats"""
def set_img2col_padding(src: Tile, *, pad_value: int | None = None, fmatrix: str | None = None) -> None:
    """padding register = bits of the element outside the map"""
def ttrans_conv(dst: Tile, src: Tile, src_order: str, dst_order: str, n: int, c: int, h: int, w: int, c0: int, tmp: Tile | None = None, *, g: int | None = None, d: int | None = None, pitch: int | None = None, room: int | None = None) -> None:
    """dst = the elements of src in another order; zero for n and channels that src lacks"""
def tload_conv(dst: Tile, src: Array, src_order: str, dst_order: str, n: int, c: int, h: int, w: int, c0: int, *, g: int | None = None, d: int | None = None, pitch: int | None = None, room: int | None = None) -> None:
    """dst = the elements of src in another order; zero for n and channels that src lacks"""
def tmatmul(dst: Tile, lhs: Tile, rhs: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = sum over k of lhs[i,k] * rhs[k,j]"""
def tmatmul_acc(dst: Tile, acc_in: Tile, lhs: Tile, rhs: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = acc_in[i,j] + sum over k of lhs[i,k] * rhs[k,j]"""
def tmatmul_bias(dst: Tile, a: Tile, b: Tile, bias: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = bias[0,j] + sum over k of a[i,k] * b[k,j]"""
def tmatmul_mx(dst: Tile, a: Tile, a_scale: Tile, b: Tile, b_scale: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = sum over k of a[i,k] * b[k,j] * 2^(a_scale[i,k/32]-127) * 2^(b_scale[k/32,j]-127)"""
def tmatmul_mx_acc(dst: Tile, c_in: Tile, a: Tile, a_scale: Tile, b: Tile, b_scale: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = c_in[i,j] + sum over k of a[i,k] * b[k,j] * 2^(a_scale[i,k/32]-127) * 2^(b_scale[k/32,j]-127)"""
def tmatmul_mx_bias(dst: Tile, a: Tile, a_scale: Tile, b: Tile, b_scale: Tile, bias: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = bias[0,j] + sum over k of a[i,k] * b[k,j] * 2^(a_scale[i,k/32]-127) * 2^(b_scale[k/32,j]-127)"""
def tgemv(dst: Tile, lhs: Tile, rhs: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = sum over k of lhs[i,k] * rhs[k,j], i = 0"""
def tgemv_acc(dst: Tile, acc_in: Tile, lhs: Tile, rhs: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = acc_in[i,j] + sum over k of lhs[i,k] * rhs[k,j], i = 0"""
def tgemv_bias(dst: Tile, a: Tile, b: Tile, bias: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = bias[0,j] + sum over k of a[i,k] * b[k,j], i = 0"""
def tgemv_mx(dst: Tile, a: Tile, a_scale: Tile, b: Tile, b_scale: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = sum over k of a[i,k] * b[k,j] * 2^(a_scale[i,k/32]-127) * 2^(b_scale[k/32,j]-127), i = 0"""
def tgemv_mx_acc(dst: Tile, c_in: Tile, a: Tile, a_scale: Tile, b: Tile, b_scale: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = c_in[i,j] + sum over k of a[i,k] * b[k,j] * 2^(a_scale[i,k/32]-127) * 2^(b_scale[k/32,j]-127), i = 0"""
def tgemv_mx_bias(dst: Tile, a: Tile, a_scale: Tile, b: Tile, b_scale: Tile, bias: Tile, *, accPhase: str | int | None = None) -> None:
    """dst[i,j] = bias[0,j] + sum over k of a[i,k] * b[k,j] * 2^(a_scale[i,k/32]-127) * 2^(b_scale[k/32,j]-127), i = 0"""
def tpush(tile: Tile | Array, pipe_handle: object, split: int, aiv_subblockid: Number | None = None) -> None:
    """wait for a free slot, copy the tile (or its half) into it, signal the other side"""
def tpop(tile: Tile | Array, pipe_handle: object, split: int, aiv_subblockid: Number | None = None) -> None:
    """wait for a full slot, bind or load it into the tile"""
def talloc(entry: Array, pipe_handle: object, split: int) -> None:
    """wait for a free slot in global memory, let entry be a view of it; no data, no signal"""
def tfree(pipe_handle: object, split: int, entry: Tile | Array | None = None) -> None:
    """give the slot of the last tpop back to the producer"""
def talloc_to_aiv(split: int, *, id: int | None = None, to: Kind | None = None) -> ValueHandle:
    """entry = a view of the next free C2V slot in global memory"""
def tpush_to_aiv(tile: Tile | Array, split: int, *, id: int | None = None) -> None:
    """copy the tile into the next free C2V slot, or pass an entry, and signal"""
def talloc_to_aic(split: int, *, id: int | None = None, to: Kind | None = None) -> ValueHandle:
    """entry = a view of the next free V2C slot in global memory"""
def tpush_to_aic(tile: Tile | Array, split: int, aiv_subblockid: Number | None = None, *, id: int | None = None) -> None:
    """copy the tile into the next free V2C slot, or pass an entry, and signal"""
def tpop_from_aic(split: int, valid_row: Number | None = None, valid_col: Number | None = None, aiv_subblockid: Number | None = None, *, id: int | None = None, to: Kind | None = None) -> Tile:
    """tile = the next full C2V slot"""
def tfree_from_aic(split: int, entry: Tile | Array | None = None, *, id: int | None = None) -> None:
    """give the C2V slot of the last tpop back to the producer"""
def tpop_from_aiv(split: int, valid_row: Number | None = None, valid_col: Number | None = None, *, id: int | None = None, to: Kind | None = None) -> Tile:
    """tile = the next full V2C slot"""
def tfree_from_aiv(split: int, entry: Tile | Array | None = None, *, id: int | None = None) -> None:
    """give the V2C slot of the last tpop back to the producer"""
def tsync(events: list[Tile | Array] | Tile | Array | None = None, *, op: str | int | None = None) -> None:
    """wait for every event; with op, until the pipe of that kind of operation is idle"""
def syncall(workspace: object | None = None, used_cores: Number | None = None, *, core_type: str | int | None = None, mode: str | int | None = None) -> None:
    """no core of core_type continues before all of them have arrived"""
def tassign(tile: Tile | Array, addr: Number, *, to: Kind | None = None) -> Tile:
    """result = the tile at byte address addr of its buffer"""
def tsubview(dst: Tile, src: Tile, rowIdx: Number, colIdx: Number) -> None:
    """dst = the storage of src from element (rowIdx, colIdx) on"""
def talias(dst: Tile, src: Tile) -> None:
    """dst = another name for the storage of src"""
def tget_scale_addr(dst: Tile, src: Tile) -> None:
    """address of dst = address of src >> 4, where the scales of a left or right tile lie"""
def sethf32mode(enable: bool, *, mode: str | int | None = None) -> None:
    """products of f32 tiles round their factors to HF32 first"""
def settf32mode(enable: bool, *, mode: str | int | None = None) -> None:
    """products of f32 tiles round their factors to TF32 first"""
def set_quant_scalar(preQuantScalar: Number, *, id: int | None = None, out_type: str | None = None) -> None:
    """pushes of an accumulator to queue id scale by preQuantScalar; with out_type the next push"""
def set_quant_vector(fp: Tile, *, id: int | None = None) -> None:
    """pushes of an accumulator to queue id scale column j by fp[0,j]; without id the next push"""
def tprint(src: Tile | Array, tmp: Array | None = None, *, printFormat: str | int | None = None) -> None:
    """print the valid region of a tile, or a view of global memory"""
def tgetval(src: Tile, offset: Number, *, to: Kind | None = None) -> Scalar[object]:
    """dst = the element of src at this offset in storage order (not row and column)"""
def tsetval(dst: Tile, offset: Number, val: Number) -> None:
    """the element of dst at this offset in storage order = val; the others stay"""
def comm_tput(dst: Array, src: Array, ping: Tile | None = None, pong: Tile | None = None, *, atomicType: str | int | None = None) -> None:
    """remote dst = local src, or dst += src with atomic_add"""
def comm_tget(dst: Array, src: Array, ping: Tile | None = None, pong: Tile | None = None) -> None:
    """local dst = remote src"""
def comm_build_async_session(workspace: Address, scratch: Tile | None = None, *, sync_id: int | None = None, block_bytes: int | None = None, comm_block_offset: int | None = None, queue_num: int | None = None, channel_group_idx: int | None = None, to: Kind | None = None) -> ValueHandle:
    """session = a transfer engine with its scratch tile and its workspace in global memory"""
def comm_tput_async(dst: Array, src: Array, session: object, peer: Number | None = None, *, engine: str | None = None, to: Kind | None = None) -> ValueHandle:
    """start remote dst = local src; event signals completion"""
def comm_tget_async(dst: Array, src: Array, session: object, peer: Number | None = None, *, engine: str | None = None, to: Kind | None = None) -> ValueHandle:
    """start local dst = remote src; event signals completion"""
def comm_wait_async_event(event: object, session: object, *, to: Kind | None = None) -> Scalar[object]:
    """wait until the transfer of event is done; true"""
def comm_test_async_event(event: object, session: object, *, to: Kind | None = None) -> Scalar[object]:
    """is the transfer of event done?"""
def comm_tnotify(signal: Array, value: Number, notifyOp: str | int) -> None:
    """remote signal[0] = value, or += value with atomic_add"""
def comm_twait(signal: Array, cmpValue: Number, cmp: str | int) -> None:
    """wait until signal[i] cmp cmpValue holds for every element"""
def comm_ttest(signal: Array, cmpValue: Number, cmp: str | int, *, to: Kind | None = None) -> Scalar[object]:
    """does signal[i] cmp cmpValue hold for every element now?"""
def comm_tbroadcast(group: list[Array] | Array, src: Array, root: int, ping: Tile | None = None, pong: Tile | None = None, *, engine: str | None = None) -> None:
    """group[r] = src for every rank r"""
def comm_tgather(dst: Array, group: list[Array] | Array, root: int, ping: Tile | None = None, pong: Tile | None = None, *, engine: str | None = None) -> None:
    """dst[..., r*H+i, j] = group[r][..., i, j], H rows a member"""
def comm_tscatter(group: list[Array] | Array, src: Array, root: int, ping: Tile | None = None, pong: Tile | None = None, *, engine: str | None = None) -> None:
    """group[r][..., i, j] = src[..., r*H+i, j], H rows a member"""
def comm_treduce(dst: Array, group: list[Array] | Array, reduceOp: str | int, root: int, acc: Tile | None = None, recvPing: Tile | None = None, recvPong: Tile | None = None, *, engine: str | None = None) -> None:
    """dst = group[root], then reduced with each other rank in ascending order, in the tile's type"""
def addptr(ptr: Address, offset: Number, *indices: Number, to: Kind | None = None) -> Pointer:
    """result = ptr + offset, counted in elements"""
def castptr(input: Address, *, to: Kind | None = None) -> Pointer:
    """the same byte address as an integer, or as a pointer to other elements of the same space"""
def ptrtoint(input: Address, *, to: Kind | None = None) -> Scalar[object]:
    """the byte address of a global pointer as a number, or the pointer to one"""
def inttoptr(input: Number, *, to: Kind | None = None) -> Pointer:
    """the byte address of a global pointer as a number, or the pointer to one"""
def get_tensor_view_dim(tensor_view: Array, dim_index: Number, *, to: Kind | None = None) -> Scalar[object]:
    """result = the size of dimension dim_index"""
def get_tensor_view_stride(tensor_view: Array, dim_index: Number, *, to: Kind | None = None) -> Scalar[object]:
    """result = the stride of dimension dim_index, in elements"""
def tensor_view_addr(src: Array, *, to: Kind | None = None) -> Pointer:
    """dst = the address of element (0, 0, ..) of src"""
def declare_global(*, to: Kind | None = None) -> ValueHandle:
    """entry = a view; a queue sets its address later"""
def alloc_multi_tile(addr: Number | None = None, valid_row: Number | None = None, valid_col: Number | None = None, *, to: Kind | None = None) -> Tile:
    """result = count separate tiles, at byte addr of their buffer or where the planner puts them"""
def multi_tile_get(source: Tile, slot: Number, *, to: Kind | None = None) -> Tile:
    """result = tile number slot of source"""
def declare_tile(*, to: Kind | None = None) -> Tile:
    """tile = a tile; a queue or tassign sets its address later"""
def tile_valid_rows(src: Tile, *, to: Kind | None = None) -> Scalar[object]:
    """result = the valid rows of src now"""
def tile_valid_cols(src: Tile, *, to: Kind | None = None) -> Scalar[object]:
    """result = the valid columns of src now"""
def get_validshape(source: Tile) -> tuple[Scalar[object], Scalar[object]]:
    """the valid rows and columns of source now, after set_validshape too"""
def bitcast(src: Tile, *, to: Kind | None = None) -> Tile:
    """result = the storage of src read as elements of another type"""
def tile_buf_addr(src: Tile, *, to: Kind | None = None) -> Pointer:
    """dst = the address of element (0, 0) of src"""
def bind_tile(source: Address, valid_row: Number | None = None, valid_col: Number | None = None, *, config: str | int | None = None, to: Kind | None = None) -> Pointer:
    """result = source, described as a tile"""
def materialize_tile(source: Address, valid_row: Number | None = None, valid_col: Number | None = None, *, config: str | int | None = None, to: Kind | None = None) -> Tile:
    """result = the tile that source describes"""
def pointer_cast(addrs: list[Number] | Number | None = None, valid_row: Number | None = None, valid_col: Number | None = None, *, config: str | int | None = None, to: Kind | None = None) -> Pointer:
    """result = a buffer at byte addrs[0] (addrs[n] in turn n of a multiple buffer)"""
def declare_tile_memref(*, to: Kind | None = None) -> Pointer:
    """result = a buffer; a queue sets its address later"""
def simd_tile_to_memref(src: Tile, *, to: Kind | None = None) -> Pointer:
    """dst = the valid region of src, for code that indexes memory itself"""
def set_flag(src_pipe: str | int, dst_pipe: str | int, event_id: str | int) -> None:
    """raise the flag once src_pipe has done all earlier work"""
def wait_flag(src_pipe: str | int, dst_pipe: str | int, event_id: str | int) -> None:
    """hold dst_pipe until the flag is raised, then take it down"""
def set_flag_dyn(event_id: Number, src_pipe: str | int, dst_pipe: str | int) -> None:
    """raise the flag once src_pipe has done all earlier work"""
def wait_flag_dyn(event_id: Number, src_pipe: str | int, dst_pipe: str | int) -> None:
    """hold dst_pipe until the flag is raised, then take it down"""
def record_event(src_op: str | int, dst_op: str | int, event_id: str | int) -> None:
    """raise the flag once its pipe has done all earlier work"""
def wait_event(src_op: str | int, dst_op: str | int, event_id: str | int) -> None:
    """hold its pipe until the flag is raised, then take it down"""
def barrier(pipe: str | int) -> None:
    """hold the pipe until all its earlier work is done; PIPE_ALL: every pipe until all work is done"""
def barrier_sync(op_type: str | int) -> None:
    """a barrier of the pipe that runs this kind of operation"""
def mem_bar(kind: str | int) -> None:
    """earlier accesses to UB of the first class are done before later ones of the second begin"""
def get_buf(op_type: str | int, buf_id_dyn: Number | None = None, mode_dyn: Number | None = None, *, buf_id: int | None = None, mode: int | None = None) -> None:
    """mode 0: hold the pipe until every earlier rls_buf of this id is done; mode 1: do not wait"""
def rls_buf(op_type: str | int, buf_id_dyn: Number | None = None, mode_dyn: Number | None = None, *, buf_id: int | None = None, mode: int | None = None) -> None:
    """mode 0: done when the pipe's work on this id is; mode 1: when all pipes' work on it is"""
def get_buf_dyn(buf_id_dyn: Number, op_type: str | int, *, mode: int | None = None) -> None:
    """get_buf with the id as an index"""
def rls_buf_dyn(buf_id_dyn: Number, op_type: str | int, *, mode: int | None = None) -> None:
    """rls_buf with the id as an index"""
def declare_eventid_array(*, to: Kind | None = None) -> ValueHandle:
    """array = event ids, as many as its type gives, not yet set"""
def eventid_array_get(array: object, index: Number) -> Scalar[object]:
    """result = array[index]"""
def eventid_array_set(array: object, index: Number, value: Number) -> None:
    """array[index] = value"""
def cmo_cacheinvalid(addr: object | None = None, *, space: str | int | None = None) -> None:
    """cached global memory is dropped before a scalar reads it: all of it, or the line at addr"""
def dcci(ptr: Address, cache: str | int, *, dst: str | int | None = None) -> None:
    """a line at ptr, or the whole data cache, is written back and dropped"""
def fence_barrier_all(scope: str | int) -> None:
    """every pipe waits until all work is done, and what it wrote is visible in scope"""
def dsb(mem: str | int) -> None:
    """earlier accesses to a memory domain are done before later ones begin"""
def sync_set(pipe: str | int, event_id_dyn: Number | None = None, *, event_id: int | None = None, ffts_mode: int | None = None) -> None:
    """count up on the other side once pipe has done all earlier work"""
def sync_wait(pipe: str | int, event_id_dyn: Number | None = None, *, event_id: int | None = None, ffts_mode: int | None = None) -> None:
    """hold pipe (on a2a3 the whole core) until the count is above 0, then count down"""
def set_cross_core(core_id: Number, event_id: Number) -> None:
    """count up; the cube reaches both sub-blocks, and theirs are combined for the cube"""
def wait_flag_dev(event_id: Number, core_id: Number | None = None) -> None:
    """hold the whole core until the count is above 0 (on the cube: of both sub-blocks)"""
def set_intra_block(pipe_dyn: Number | None = None, event_dyn: Number | None = None, event_id_dyn: Number | None = None, *, pipe: str | int | None = None, event_id: int | None = None) -> None:
    """count up on one sub-block once pipe has done all earlier work"""
def wait_intra_block(pipe_dyn: Number | None = None, event_dyn: Number | None = None, event_id_dyn: Number | None = None, *, pipe: str | int | None = None, event_id: int | None = None) -> None:
    """hold pipe until the count is above 0, then count down"""
def set_cross_block(pipe: str | int, event_id_dyn: Number | None = None, *, event_id: int | None = None, ffts_mode: int | None = None) -> None:
    """signal to all cores of this kind that pipe has arrived here"""
def wait_cross_block(pipe: str | int, event_id_dyn: Number | None = None, *, event_id: int | None = None, ffts_mode: int | None = None) -> None:
    """hold pipe until all cores of this kind have come"""
def set_ffts(ffts: Address) -> None:
    """from here on cores signal each other through the memory at ffts"""
def aic_initialize_pipe(dir_mask: int, slot_size: int, gm_slot_buffer: Address | None = None, gm_slot_tensor: Array | None = None, c2v_consumer_buf: Number | None = None, v2c_consumer_buf: Number | None = None, *, id: int | None = None, slot_num: int | None = None, local_slot_num: int | None = None, nosplit: bool | None = None, acc_push_epilogue: str | int | None = None) -> None:
    """the cube end of queue id"""
def aiv_initialize_pipe(dir_mask: int, slot_size: int, gm_slot_buffer: Address | None = None, gm_slot_tensor: Array | None = None, c2v_consumer_buf: Number | None = None, v2c_consumer_buf: Number | None = None, *, id: int | None = None, slot_num: int | None = None, local_slot_num: int | None = None, nosplit: bool | None = None, acc_push_epilogue: str | int | None = None) -> None:
    """the vector end of queue id"""
def initialize_l2g2l_pipe(gm_addr: object, dir_mask: int, slot_size: int, slot_num: int, local_addr: object | None = None, peer_local_addr: object | None = None, *, local_slot_num: int | None = None, flag_base: int | None = None, nosplit: bool | None = None, acc_push_epilogue: str | int | None = None, to: Kind | None = None) -> ValueHandle:
    """pipe = a queue with slots in global memory (a2a3)"""
def initialize_l2l_pipe(local_addr: object, dir_mask: int, slot_size: int, slot_num: int, peer_local_addr: object | None = None, *, flag_base: int | None = None, nosplit: bool | None = None, acc_push_epilogue: str | int | None = None, to: Kind | None = None) -> ValueHandle:
    """pipe = a queue with slots in the consumer's local buffer (a5)"""
def reserve_buffer(name: str, size: int, location: str | int, autoAlloc: bool, *, base: int | None = None, to: Kind | None = None) -> Scalar[object]:
    """addr = the base of size bytes kept free for a queue"""
def import_reserved_buffer(name: str, peer_func: str | int, *, to: Kind | None = None) -> Scalar[object]:
    """addr = the base of the buffer that peer_func reserves under this name"""
def get_block_idx() -> Scalar[object]:
    """result = the number of this block, from 0"""
def get_subblock_idx() -> Scalar[object]:
    """result = the number of this vector sub-block, 0 or 1"""
def get_block_num() -> Scalar[object]:
    """result = how many blocks were launched"""
def get_subblock_num() -> Scalar[object]:
    """result = how many vector sub-blocks a block has"""
def get_vms4_sr(*, to: Kind | None = None) -> tuple[Scalar[object], Scalar[object], Scalar[object], Scalar[object]]:
    """listN = how many records of list N the last vmrgsort4 has merged"""
def load_scalar(ptr: Address, offset: Number, *indices: Number, to: Kind | None = None) -> Scalar[object]:
    """value = ptr[offset], in elements"""
def store_scalar(ptr: Address, offset: Number, value: Number, *indices: Number) -> None:
    """ptr[offset] = value, in elements"""
def ld_dev(ptr: Address, offset: Number, *indices: Number, volatile: str | int | None = None, to: Kind | None = None) -> Scalar[object]:
    """value = ptr[offset], in elements; past the data cache"""
def st_dev(ptr: Address, offset: Number, value: Number, *indices: Number, volatile: str | int | None = None) -> None:
    """ptr[offset] = value, in elements; past the data cache"""
def declare_local_array(*, to: Kind | None = None) -> ValueHandle:
    """array = an array of the scalar unit, not yet set"""
def local_array_get(array: object, indices: list[Number] | Number | None = None, *, to: Kind | None = None) -> Scalar[object]:
    """result = array[indices]"""
def local_array_set(array: object, value: Number, indices: list[Number] | Number | None = None) -> None:
    """array[indices] = value"""
def get_ctrl(*, to: Kind | None = None) -> Scalar[object]:
    """result = CTRL"""
def set_ctrl(value: Number) -> None:
    """CTRL = value"""
def sbitset0(first: Number, second: Number, *, to: Kind | None = None) -> Scalar[object]:
    """result = first with bit number second cleared"""
def sbitset1(first: Number, second: Number, *, to: Kind | None = None) -> Scalar[object]:
    """result = first with bit number second set"""
def trap() -> None:
    """stop with an error"""
def declare_struct(*, to: Kind | None = None) -> ValueHandle:
    """s = a record of zeros"""
def struct_get(s: object, path: str | int, *, to: Kind | None = None) -> Scalar[object]:
    """value = the field at path"""
def struct_set(s: object, value: Number, path: str | int) -> None:
    """the field at path becomes value"""
def vlds(source: Address, offset: Number, *, dist: str | None = None, to: Kind | None = None) -> Vreg:
    """result = 256-byte image built by dist from UB at source + offset elements; no mask"""
def vldsx2(source: Address, offset: Number, dist: str, *, to: Kind | None = None) -> tuple[Vreg, Vreg]:
    """DINTLV_Bk: low item i = src[2i], high item i = src[2i+1] of a 512-byte window; BDINTLV: the same with 32-byte blocks"""
def vsldb(source: Address, block_stride: Number, repeat_stride: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """block b = mask lane b ? UB block at source + (repeat_stride + b * block_stride) * 32 B : 0, b < 8"""
def vgather2(source: Address, offsets: Vreg, mask: Mask | Number, *, to: Kind | None = None) -> Vreg:
    """result[i] = mask[i] ? UB[source + offsets[i] elements] : 0"""
def vgatherb(source: Address, offsets: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """block b = mask lane b ? 32 bytes of UB at source + offsets[b] bytes : 0, b < 8"""
def vgather2_bc(source: Address, offsets: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = mask[i] ? UB[source + offsets[i] elements] : 0"""
def vsld(source: Address, offset: Number, stride: str, *, to: Kind | None = None) -> Vreg:
    """strided load: the token picks the sub-elements read from each source block"""
def vsts(value: Vreg, destination: Address, offset: Number, mask: Mask | None = None, *, dist: str | None = None, to: Kind | None = None) -> None:
    """UB at destination + offset elements = active lanes of value, placed by dist"""
def vstsx2(low: Vreg, high: Vreg, destination: Address, offset: Number, dist: str, mask: Mask | None = None) -> None:
    """item 2i = low[i], item 2i+1 = high[i], items of dist's width; 512 bytes, mask ignored"""
def vsstb(value: Vreg, destination: Address, block_stride: Number, repeat_stride: Number, mask: Mask | None = None, *, to: Kind | None = None) -> None:
    """UB block at destination + (repeat_stride + b * block_stride) * 32 B = block b of value where mask lane b, b < 8"""
def vscatter(value: Vreg, destination: Address, offsets: Vreg, mask: Mask | None = None) -> None:
    """UB[destination + offsets[i] elements] = value[i] where mask[i]; of bytes value[2i]"""
def vsst(value: Vreg, destination: Address, offset: Number, stride: str) -> None:
    """strided store: the token picks the sub-elements written in each destination block"""
def vldas(source: Address, offset: Number | None = None, *, to: Kind | None = None) -> ValueHandle:
    """result = load state primed with the 32-byte block that holds source"""
def vldus(source: Address, align: object, increment: Number | None = None, *, to: Kind | None = None) -> tuple[Vreg, ValueHandle]:
    """result[i] = UB[source + i elements]; updated_align is the state for a later vldus"""
def uvld(source: Address, offset: Number, *, to: Kind | None = None) -> Vreg:
    """result[i] = UB[source + offset + i elements]: vldas and vldus in one"""
def init_align(*, to: Kind | None = None) -> ValueHandle:
    """result = an empty store state"""
def sprsti(destination: Address, offset: Number, spr: str, *, to: Kind | None = None) -> None:
    """UB at destination + offset = special register AR, 4 bytes; offset counts words of 4 bytes, a constant"""
def sprsts(destination: Address, offset: Number, spr: str, *, to: Kind | None = None) -> None:
    """UB at destination + offset = special register AR, 4 bytes; offset counts bytes"""
def sprclr(spr: str) -> None:
    """clear special register AR, the store offset of vstur and vstar"""
def vstas(value: object, destination: Address, offset: Number, *, to: Kind | None = None) -> None:
    """UB before destination + offset elements = the pending bytes of a vstus or pstu stream"""
def vstar(value: object, destination: Address) -> None:
    """UB before destination + AR bytes = the pending bytes of a vstur stream"""
def vsta(value: object, destination: Address, offset: Number) -> None:
    """UB before destination + offset elements = the pending bytes of the stream"""
def vstus(align_in: object, offset: Number, value: Vreg, base: Address, *, to: Kind | None = None) -> ValueHandle:
    """append value[0 .. offset) to the stream that starts at base"""
def vstur(align_in: object, value: Vreg, base: Address, mode: str, *, to: Kind | None = None) -> ValueHandle:
    """append the first SQZN bytes of value at base + AR; POST_UPDATE adds SQZN to AR"""
def vstu(align_in: object, offset_in: Number, value: Vreg, base: Address, mode: str, *, to: Kind | None = None) -> tuple[ValueHandle, Scalar[object]]:
    """append value at base + offset_in; align_out and offset_out are the stream's new state"""
def vbr(value: Number, *, to: Kind | None = None) -> Vreg:
    """result[i] = value; no mask"""
def vdup(input: Vreg | Number, mask: Mask | None = None, *, position: str | None = None, to: Kind | None = None) -> Vreg:
    """result[i] = mask[i] ? x : 0; x is the scalar, or lane 0 (LOWEST) or N-1 (HIGHEST) of input"""
def vci(index: Number, *, order: str | None = None, to: Kind | None = None) -> Vreg:
    """result[i] = index + i (ASC) or index - i (DESC); integers wrap"""
def vabs(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """|x|; the lowest integer stays itself"""
def vneg(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """-x; integers wrap"""
def vexp(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """e to the power x"""
def vln(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """natural logarithm of x"""
def vsqrt(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """square root of x"""
def vrelu(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """max(x, 0)"""
def vnot(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """bitwise complement of x"""
def vrec(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """1 / x"""
def vrsqrt(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """1 / sqrt(x)"""
def vbcnt(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """number of set bits of x"""
def vcls(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """number of leading bits equal to the highest bit of x, that one included"""
def vmov(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """x"""
def vadd(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs + rhs; integers wrap"""
def vsub(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs - rhs; integers wrap"""
def vmul(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs * rhs; integers wrap"""
def vmax(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """max(lhs, rhs); NaN wins"""
def vmin(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """min(lhs, rhs); NaN wins"""
def vand(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs & rhs"""
def vxor(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs ^ rhs"""
def vdiv(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs / rhs; x/0 is infinite, 0/0 NaN; integers truncate, and x/0 is 0"""
def vor(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs | rhs, on raw bits"""
def vshl(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs << rhs"""
def vshr(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """lhs >> rhs, arithmetic for signed elements, logical for unsigned"""
def vaddc(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> tuple[Vreg, Mask]:
    """result = lhs + rhs, carry = the sum's bit 32"""
def vsubc(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> tuple[Vreg, Mask]:
    """result = lhs - rhs, carry = 1 where there is no borrow (lhs >= rhs)"""
def vaddcs(lhs: Vreg, rhs: Vreg, carry_in: Mask, mask: Mask | None = None, *, to: Kind | None = None) -> tuple[Vreg, Mask]:
    """result = lhs + rhs + carry_in, carry = the sum's bit 32"""
def vsubcs(lhs: Vreg, rhs: Vreg, carry_in: Mask, mask: Mask | None = None, *, to: Kind | None = None) -> tuple[Vreg, Mask]:
    """result = lhs - rhs - (1 - carry_in), carry = 1 where there is no borrow"""
def vadds(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input + scalar; integers wrap"""
def vmaxs(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """max(input, scalar)"""
def vmins(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """min(input, scalar)"""
def vlrelu(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input >= 0 ? input : scalar * input"""
def vmuls(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input * scalar; integers wrap"""
def vshls(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input << scalar"""
def vshrs(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input >> scalar, arithmetic for signed elements, logical for unsigned"""
def vsubs(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input - scalar; integers wrap"""
def vands(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input & scalar"""
def vors(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input | scalar"""
def vxors(input: Vreg, scalar: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """input ^ scalar"""
def vcmp(src0: Vreg, src1: Vreg, cmp_mode: str, mask: Mask | None = None, *, to: Kind | None = None) -> Mask:
    """result[i] = mask[i] and (src0[i] cmp_mode src1[i])"""
def vcmps(src: Vreg, scalar: Number, cmp_mode: str, mask: Mask | None = None, *, to: Kind | None = None) -> Mask:
    """result[i] = mask[i] and (src[i] cmp_mode scalar)"""
def vsel(src0: Vreg, src1: Vreg, mask: Mask, *, to: Kind | None = None) -> Vreg:
    """result[i] = mask[i] ? src0[i] : src1[i]"""
def vselr(src0: Vreg, src1: Vreg, *, to: Kind | None = None) -> Vreg:
    """result[i] = src0[src1[i]]; no mask"""
def vselrv2(src0: Vreg, src1: Vreg, *, to: Kind | None = None) -> Vreg:
    """result[i] = p[i] ? src1[i] : src0[i] with p implicit in the lowering"""
def vcvt(input: Vreg, mask: Mask | None = None, *, rnd: str | None = None, sat: str | None = None, part: str | None = None, round_mode: str | None = None, to: Kind | None = None) -> Vreg:
    """result = input converted; narrowing fills every 2nd or 4th lane from part on, the rest 0; widening reads those lanes; masked source lanes give 0"""
def vtrc(input: Vreg, round_mode: str, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = mask[i] ? input[i] rounded to an integral value : 0"""
def vbitcast(input: Vreg, *, to: Kind | None = None) -> Vreg:
    """result = the same 256 bytes under another element type"""
def vcadd(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[0] = sum of active lanes, the other lanes 0"""
def vcmax(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[0] = maximum, result[1] = bits of its first index, the others 0"""
def vcmin(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[0] = minimum, result[1] = bits of its first index, the others 0"""
def vcbmax(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> tuple[Vreg, Mask]:
    """value[0] = maximum, the others 0; predicate = the active lanes equal to it"""
def vcbmin(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> tuple[Vreg, Mask]:
    """value[0] = minimum, the others 0; predicate = the active lanes equal to it"""
def vcgadd(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[g] = sum of the active lanes of VLane g, g < 8, the others 0"""
def vcgmax(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[g] = maximum of the active lanes of VLane g, g < 8, the others 0"""
def vcgmin(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[g] = minimum of the active lanes of VLane g, g < 8, the others 0"""
def vcpadd(input: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = input[2i] + input[2i+1] for i < N/2, the upper half 0; masked lanes count as 0"""
def vintlv(lhs: Vreg, rhs: Vreg, *, to: Kind | None = None) -> tuple[Vreg, Vreg]:
    """low = l0 r0 l1 r1 .. of the first halves, high the same of the second"""
def vdintlv(lhs: Vreg, rhs: Vreg, *, to: Kind | None = None) -> tuple[Vreg, Vreg]:
    """low = even, high = odd positions of the stream lhs, rhs"""
def vintlvv2(lhs: Vreg, rhs: Vreg, part: str, *, to: Kind | None = None) -> Vreg:
    """the part half of vintlv"""
def vdintlvv2(lhs: Vreg, rhs: Vreg, part: str, *, to: Kind | None = None) -> Vreg:
    """the part half of vdintlv"""
def vsqz(input: Vreg, mask: Mask, *, to: Kind | None = None) -> Vreg:
    """active lanes in order at the front, the rest 0; SQZN = their bytes"""
def vusqz(src: Vreg, mask: Mask, *, to: Kind | None = None) -> Vreg:
    """result[i] = number of active lanes before i; src is ignored; SQZN as vsqz"""
def vpack(src: Vreg, part: str, *, to: Kind | None = None) -> Vreg:
    """low halves of src's elements in the part half of result, the other half 0"""
def vsunpack(src: Vreg, part: Number, *, to: Kind | None = None) -> Vreg:
    """result[i] = src[part * N/2 + i] sign-extended; part is 0 or 1"""
def vzunpack(src: Vreg, part: Number, *, to: Kind | None = None) -> Vreg:
    """result[i] = src[part * N/2 + i] zero-extended; part is 0 or 1"""
def vslide(src0: Vreg, src1: Vreg, amt: Number, *, to: Kind | None = None) -> Vreg:
    """result[i] = (src1, src0)[amt + i], src1 first"""
def vshift(src: Vreg, amt: Number, *, to: Kind | None = None) -> Vreg:
    """result[i] = i >= amt ? src[i - amt] : 0"""
def vperm(src: Vreg, index: Vreg, *, to: Kind | None = None) -> Vreg:
    """result[i] = src[index[i] mod N]"""
def vprelu(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = lhs[i] >= 0 ? lhs[i] : rhs[i] * lhs[i]"""
def vexpdif(input: Vreg, max: Vreg, part: str, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result = e to the power (input - max) in f32; f16 lanes 0,2,.. (EVEN) or 1,3,.. (ODD)"""
def vaxpy(src0: Vreg, src1: Vreg, alpha: Number, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = alpha * src0[i] + src1[i]"""
def vmula(acc: Vreg, lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = acc[i] + lhs[i] * rhs[i], rounded once"""
def vmadd(acc: Vreg, lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = acc[i] * lhs[i] + rhs[i], rounded once"""
def vmulscvt(input: Vreg, scalar: Number, rnd: str, part: str, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result = input * scalar in f32, then converted to f16: into lanes 0,2,.. (EVEN) or 1,3,.."""
def vmull(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> tuple[Vreg, Vreg]:
    """low and high word of the 64-bit product lhs[i] * rhs[i]; signed for signed elements"""
def vaddrelu(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = max(lhs[i] + rhs[i], 0)"""
def vsubrelu(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = max(lhs[i] - rhs[i], 0)"""
def vaddreluconv(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = max(lhs + rhs, 0) of lane i, converted to its type"""
def vmulconv(lhs: Vreg, rhs: Vreg, mask: Mask | None = None, *, to: Kind | None = None) -> Vreg:
    """result[i] = lhs * rhs of lane i, converted to its type"""
def vbitsort(destination: Address, source: Address, indices: Address, repeat_times: Number) -> None:
    """each repeat sorts 32 scores with their indices, descending and stable, into 8-byte records (score, index)"""
def vmrgsort4(destination: Address, source0: Address, source1: Address, source2: Address, source3: Address, count: Number, config: Number) -> None:
    """merge up to 4 lists of 8-byte (score, index) records, each descending, into destination"""
def vsort32(destination: Address, source: Address, config: Number) -> None:
    """sort 32 elements of source under a configuration word"""
def vtranspose(destination: Address, source: Address, config: Number) -> None:
    """transpose blocks of source under a configuration word"""
def chistv2(acc: Vreg, source: Vreg, mask: Mask, bin: Number, *, to: Kind | None = None) -> Vreg:
    """result[b] = acc[b] + number of active source[i] <= b + 128 * bin"""
def dhistv2(acc: Vreg, source: Vreg, mask: Mask, bin: Number, *, to: Kind | None = None) -> Vreg:
    """result[b] = acc[b] + number of active source[i] == b + 128 * bin"""
def vmi_vchist(acc: Logical, src: Logical, mask: Logical, *, to: Kind | None = None) -> ValueHandle:
    """result[b] = acc[b] + number of active src[i] <= b"""
def vmi_vdhist(acc: Logical, src: Logical, mask: Logical, *, to: Kind | None = None) -> ValueHandle:
    """result[b] = acc[b] + number of active src[i] == b"""
def pset_b8(pattern: str, *, to: Kind | None = None) -> Mask:
    """result = the lanes pattern names, of 256"""
def pge_b8(pattern: str, *, to: Kind | None = None) -> Mask:
    """result = the lanes pattern names, of 256; no comparison despite its name"""
def plt_b8(scalar: Number, *, to: Kind | None = None) -> tuple[Mask, Scalar[object]]:
    """mask[i] = i < scalar, i < 256; scalar_out = max(scalar - 256, 0)"""
def pltm_b8(loop: Number, bound: Number, *, to: Kind | None = None) -> Mask:
    """mask[i] = i + loop * 256 < bound, i < 256"""
def pset_b16(pattern: str, *, to: Kind | None = None) -> Mask:
    """result = the lanes pattern names, of 128"""
def pge_b16(pattern: str, *, to: Kind | None = None) -> Mask:
    """result = the lanes pattern names, of 128; no comparison despite its name"""
def plt_b16(scalar: Number, *, to: Kind | None = None) -> tuple[Mask, Scalar[object]]:
    """mask[i] = i < scalar, i < 128; scalar_out = max(scalar - 128, 0)"""
def pltm_b16(loop: Number, bound: Number, *, to: Kind | None = None) -> Mask:
    """mask[i] = i + loop * 128 < bound, i < 128"""
def pset_b32(pattern: str, *, to: Kind | None = None) -> Mask:
    """result = the lanes pattern names, of 64"""
def pge_b32(pattern: str, *, to: Kind | None = None) -> Mask:
    """result = the lanes pattern names, of 64; no comparison despite its name"""
def plt_b32(scalar: Number, *, to: Kind | None = None) -> tuple[Mask, Scalar[object]]:
    """mask[i] = i < scalar, i < 64; scalar_out = max(scalar - 64, 0)"""
def pltm_b32(loop: Number, bound: Number, *, to: Kind | None = None) -> Mask:
    """mask[i] = i + loop * 64 < bound, i < 64"""
def pand(src0: Mask, src1: Mask, mask: Mask | None = None, *, to: Kind | None = None) -> Mask:
    """result = mask ? src0 & src1 : 0"""
def por(src0: Mask, src1: Mask, mask: Mask | None = None, *, to: Kind | None = None) -> Mask:
    """result = mask ? src0 | src1 : 0"""
def pxor(src0: Mask, src1: Mask, mask: Mask | None = None, *, to: Kind | None = None) -> Mask:
    """result = mask ? src0 ^ src1 : 0"""
def psel(src0: Mask, src1: Mask, mask: Mask, *, to: Kind | None = None) -> Mask:
    """result = mask ? src0 : src1"""
def pnot(input: Mask, mask: Mask | None = None, *, to: Kind | None = None) -> Mask:
    """result = mask ? ~input : 0"""
def pintlv_b8(lhs: Mask, rhs: Mask, *, to: Kind | None = None) -> tuple[Mask, Mask]:
    """low = l0 r0 l1 r1 .. of the first halves, high the same of the second"""
def pdintlv_b8(lhs: Mask, rhs: Mask, *, to: Kind | None = None) -> tuple[Mask, Mask]:
    """low = even, high = odd lanes of lhs, then of rhs"""
def pintlv_b16(lhs: Mask, rhs: Mask, *, to: Kind | None = None) -> tuple[Mask, Mask]:
    """low = l0 r0 l1 r1 .. of the first halves, high the same of the second"""
def pdintlv_b16(lhs: Mask, rhs: Mask, *, to: Kind | None = None) -> tuple[Mask, Mask]:
    """low = even, high = odd lanes of lhs, then of rhs"""
def pintlv_b32(lhs: Mask, rhs: Mask, *, to: Kind | None = None) -> tuple[Mask, Mask]:
    """low = l0 r0 l1 r1 .. of the first halves, high the same of the second"""
def pdintlv_b32(lhs: Mask, rhs: Mask, *, to: Kind | None = None) -> tuple[Mask, Mask]:
    """low = even, high = odd lanes of lhs, then of rhs"""
def ppack(input: Mask, part: str, *, to: Kind | None = None) -> Mask:
    """result = bits 0, 2, 4, .. of input in its lower or upper 128 bits, the other half 0"""
def punpack(input: Mask, part: str, *, to: Kind | None = None) -> Mask:
    """result bit 2i = bit i of the part half of input, odd bits 0"""
def pbitcast(input: Mask, *, to: Kind | None = None) -> Mask:
    """result = the same 256 bits under another granularity"""
def plds(source: Address, offset: Number, dist: str, *, to: Kind | None = None) -> Mask:
    """result = the image at source + offset bytes, distributed"""
def pldi(source: Address, offset: Number, dist: str, *, to: Kind | None = None) -> Mask:
    """result = the image offset images on from source, distributed; offset is an immediate"""
def psts(value: Mask, destination: Address, offset: Number, dist: str, *, to: Kind | None = None) -> None:
    """the image at destination + offset bytes = value, distributed"""
def psti(value: Mask, destination: Address, offset: Number, dist: str, *, to: Kind | None = None) -> None:
    """the image offset images on from destination = value; offset is an immediate"""
def pld(source: Address, areg: Number, dist: str, *, to: Kind | None = None) -> Mask:
    """result = the image at source + 8 * areg bytes, distributed"""
def pst(value: Mask, destination: Address, areg: Number, dist: str) -> None:
    """the image at destination + 8 * areg bytes = value, distributed"""
def pstu(align_in: object, value: Mask, base: Address, *, to: Kind | None = None) -> ValueHandle:
    """append the lanes of value as bits to an unaligned stream: 16 bytes of b16, 8 of b32"""
def ub_vadd(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = src0 + src1"""
def ub_vsub(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = src0 - src1"""
def ub_vmul(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = src0 * src1"""
def ub_vdiv(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = src0 / src1"""
def ub_vmax(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = the larger of src0 and src1"""
def ub_vmin(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = the smaller of src0 and src1"""
def ub_vand(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = src0 & src1"""
def ub_vor(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = src0 | src1"""
def ub_vaddrelu(dst: Address, src0: Address, src1: Address, repeat: Number, dstBlockStride: Number, src0BlockStride: Number, src1BlockStride: Number, dstRepeatStride: Number, src0RepeatStride: Number, src1RepeatStride: Number) -> None:
    """dst = max(src0 + src1, 0)"""
def ub_vnot(dst: Address, src: Address, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = ~src"""
def ub_vabs(dst: Address, src: Address, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = |src|"""
def ub_vrelu(dst: Address, src: Address, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = max(src, 0)"""
def ub_vexp(dst: Address, src: Address, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = e to the power src"""
def ub_vln(dst: Address, src: Address, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = natural logarithm of src"""
def ub_vsqrt(dst: Address, src: Address, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = square root of src"""
def ub_vrsqrt(dst: Address, src: Address, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = 1 / square root of src"""
def ub_vadds(dst: Address, src: Address, shiftDist: Number, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = src + the element of the low bits of shiftDist"""
def ub_vmuls(dst: Address, src: Address, shiftDist: Number, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = src * the element of the low bits of shiftDist"""
def ub_vmaxs(dst: Address, src: Address, shiftDist: Number, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = the larger of src and the element of the low bits of shiftDist"""
def ub_vmins(dst: Address, src: Address, shiftDist: Number, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = the smaller of src and the element of the low bits of shiftDist"""
def ub_vshl(dst: Address, src: Address, shiftDist: Number, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = src << shiftDist"""
def ub_vshr(dst: Address, src: Address, shiftDist: Number, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = src >> shiftDist"""
def ub_vdup(dst: Address, scalar: Number, repeat: Number, dstBlockStride: Number, srcBlockStride: Number, dstRepeatStride: Number, srcRepeatStride: Number) -> None:
    """dst = the element of the low bits of scalar, in every lane"""
def ub_set_mask(mask0: Number, mask1: Number) -> None:
    """lanes of a repeat that take part, 128 bits; or how many elements, where the mask counts"""
def ub_set_mask_count() -> None:
    """from here on the mask counts elements"""
def ub_set_mask_norm() -> None:
    """from here on the mask has a bit for each lane"""
def vmi_vabs(source: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """|x|"""
def vmi_vneg(source: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """-x; integers wrap"""
def vmi_vrelu(source: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """max(x, 0)"""
def vmi_vexp(source: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """e to the power x"""
def vmi_vln(source: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """natural logarithm of x"""
def vmi_vsqrt(source: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """square root of x"""
def vmi_vnot(source: Vreg | Mask, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> Vreg | Mask:
    """bitwise complement of integers, or of a mask"""
def vmi_vadd(lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """lhs + rhs; integers wrap"""
def vmi_vsub(lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """lhs - rhs; integers wrap"""
def vmi_vmul(lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """lhs * rhs"""
def vmi_vdiv(lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """lhs / rhs"""
def vmi_vmax(lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """the larger"""
def vmi_vmin(lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """the smaller"""
def vmi_vshl(lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """lhs << rhs"""
def vmi_vshr(lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """lhs >> rhs"""
def vmi_vand(lhs: Vreg | Mask, rhs: Vreg | Mask, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> Vreg | Mask:
    """bitwise and of integers, or of two masks"""
def vmi_vor(lhs: Vreg | Mask, rhs: Vreg | Mask, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> Vreg | Mask:
    """bitwise or of integers, or of two masks"""
def vmi_vxor(lhs: Vreg | Mask, rhs: Vreg | Mask, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> Vreg | Mask:
    """bitwise xor of integers, or of two masks"""
def vmi_shrsi(lhs: Logical, rhs: Logical, *, to: Kind | None = None) -> ValueHandle:
    """lhs >> rhs, the sign fills"""
def vmi_shrui(lhs: Logical, rhs: Logical, *, to: Kind | None = None) -> ValueHandle:
    """lhs >> rhs, zeros fill"""
def vmi_vadds(src: Logical, scalar: Number, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """src + scalar"""
def vmi_vmuls(src: Logical, scalar: Number, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """src * scalar"""
def vmi_vmaxs(src: Logical, scalar: Number, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """max(src, scalar)"""
def vmi_vmins(src: Logical, scalar: Number, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """min(src, scalar)"""
def vmi_vshls(src: Logical, scalar: Number, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """src << scalar"""
def vmi_vshrs(src: Logical, scalar: Number, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """src >> scalar"""
def vmi_vmula(acc: Logical, lhs: Logical, rhs: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """acc + lhs * rhs, rounded once"""
def vmi_vprelu(x: Logical, alpha: Logical, mask: Logical | None = None, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """x >= 0 ? x : alpha * x"""
def vmi_fma(lhs: Logical, rhs: Logical, acc: Logical, *, to: Kind | None = None) -> ValueHandle:
    """lhs * rhs + acc, rounded once"""
def vmi_vaxpy(x: Logical, acc: Logical, alpha: Number, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """alpha * x + acc"""
def vmi_vlrelu(x: Logical, slope: Number, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """x >= 0 ? x : slope * x"""
def vmi_vexpdif(x: Logical, max: Logical, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """e to the power x - max, in f32"""
def vmi_vmull(a: Logical, b: Logical, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> tuple[ValueHandle, ValueHandle]:
    """low and high words of the 64-bit product"""
def vmi_vaddc(lhs: Logical, rhs: Logical, mask: Logical, *, to: Kind | None = None) -> tuple[ValueHandle, ValueHandle]:
    """lhs + rhs of 32 bits, and a mask of what is carried"""
def vmi_vaddcs(lhs: Logical, rhs: Logical, carry_in: Logical, mask: Logical, *, to: Kind | None = None) -> tuple[ValueHandle, ValueHandle]:
    """lhs + rhs + carry_in of 32 bits, and a mask of what is carried"""
def vmi_vcmp(lhs: Logical, rhs: Logical, seed: Logical, cmp: str, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """seed and (lhs cmp rhs)"""
def vmi_vcmps(src: Logical, scalar: Number, seed: Logical, cmp: str, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """seed and (src cmp scalar)"""
def vmi_cmpf(lhs: Logical, rhs: Logical, predicate: str, *, to: Kind | None = None) -> ValueHandle:
    """lhs predicate rhs"""
def vmi_cmpi(lhs: Logical, rhs: Logical, predicate: str, *, to: Kind | None = None) -> ValueHandle:
    """lhs predicate rhs"""
def vmi_vsel(mask: Logical, true_value: Logical, false_value: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """mask[i] ? true_value[i] : false_value[i]"""
def vmi_vbrc(value: Vreg | Number, *, group: int | None = None, to: Kind | None = None) -> ValueHandle:
    """a scalar or single lane everywhere, or slot g in every lane of group g"""
def vmi_vci(base: Number, *, order: str | None = None, group: int | None = None, to: Kind | None = None) -> ValueHandle:
    """base + i or base - i; with groups, counted anew in each"""
def vmi_constant(value: str | int, *, to: Kind | None = None) -> ValueHandle:
    """one value for all lanes, or one for each"""
def vmi_create_mask(active_lanes: Number, *, to: Kind | None = None) -> ValueHandle:
    """the first active_lanes lanes"""
def vmi_create_group_mask(active_elems_per_group: Number, num_groups: int, group_size: int, *, to: Kind | None = None) -> ValueHandle:
    """the first active_elems_per_group lanes of every group"""
def vmi_pset(pattern: str, *, group: int | None = None, to: Kind | None = None) -> ValueHandle:
    """the lanes a pattern names, in every group"""
def vmi_pge(pattern: str, *, group: int | None = None, to: Kind | None = None) -> ValueHandle:
    """the lanes a pattern names, in every group"""
def vmi_plt(scalar: Number, *, to: Kind | None = None) -> tuple[ValueHandle, Scalar[object]]:
    """the first scalar lanes, and how many are left for the next vector"""
def vmi_constant_mask(value: str | int, *, to: Kind | None = None) -> ValueHandle:
    """one bit for all lanes, or one for each"""
def vmi_vcadd(source: Logical, mask: Logical, *, group: int | None = None, pmode: str | None = None, reassoc: str | int | None = None, to: Kind | None = None) -> ValueHandle:
    """result[g] = the sum of the active lanes of group g"""
def vmi_vcmax(source: Logical, mask: Logical, *, group: int | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """result[g] = the maximum of the active lanes of group g"""
def vmi_vcmin(source: Logical, mask: Logical, *, group: int | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """result[g] = the minimum of the active lanes of group g"""
def vmi_ensure_layout(source: Logical, *, to: Kind | None = None) -> ValueHandle:
    """source, kept in another way"""
def vmi_ensure_mask_layout(source: Logical, *, to: Kind | None = None) -> ValueHandle:
    """source, kept in another way"""
def vmi_ensure_mask_granularity(source: Logical, *, to: Kind | None = None) -> ValueHandle:
    """source, kept in another way"""
def vmi_pack(parts: list[object] | object | None = None, *, to: Kind | None = None) -> Vreg | Mask:
    """between a logical value and its registers, by the layout of its type"""
def vmi_unpack(source: Vreg | Mask) -> None:
    """between a logical value and its registers, by the layout of its type"""
def vmi_vintlv(lhs: Logical, rhs: Logical, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> tuple[ValueHandle, ValueHandle]:
    """lanes of lhs and rhs in turn: the first half, the second half"""
def vmi_vdintlv(lhs: Logical, rhs: Logical, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> tuple[ValueHandle, ValueHandle]:
    """even and odd lanes of lhs followed by rhs"""
def vmi_vselr(source: Logical, index: Logical, *, to: Kind | None = None) -> ValueHandle:
    """source[index[i]]"""
def vmi_shuffle(source: Logical, indices: str | int, *, to: Kind | None = None) -> ValueHandle:
    """source[indices[i]], the indices written in the program"""
def vmi_channel_split(source: Logical) -> None:
    """result c holds the lanes c, c + N, c + 2 N, ... of source"""
def vmi_channel_merge(inputs: list[Logical] | Logical | None = None, *, to: Kind | None = None) -> ValueHandle:
    """the lanes of the inputs in turn"""
def vmi_compress(source: Logical, mask: Logical, *, to: Kind | None = None) -> ValueHandle:
    """the active lanes of source moved to the front, 0 behind them"""
def vmi_active_prefix_index(mask: Logical, *, to: Kind | None = None) -> ValueHandle:
    """how many lanes before i are active"""
def vmi_vcvt(source: Logical, *, rounding: str | None = None, saturate: str | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """source converted"""
def vmi_extsi(source: Logical, *, rounding: str | None = None, saturate: str | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """source with its sign extended"""
def vmi_sitofp(source: Logical, *, rounding: str | None = None, saturate: str | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """signed integers as floats"""
def vmi_fptosi(source: Logical, *, rounding: str | None = None, saturate: str | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """floats as signed integers"""
def vmi_extui(source: Logical, *, rounding: str | None = None, saturate: str | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """source with zeros in front"""
def vmi_fptoui(source: Logical, *, rounding: str | None = None, saturate: str | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """floats as unsigned integers"""
def vmi_vinterpret_cast(source: Logical, *, to: Kind | None = None) -> ValueHandle:
    """the same bits as lanes of another type"""
def vmi_vload(source: Address, offset: Number, stride: Number | None = None, block_stride: Number | None = None, repeat_stride: Number | None = None, *, dist_mode: str | None = None, group: int | None = None, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """L elements from source + offset: a run, a row a group (brc: one element a group), 32-byte blocks, or by dist_mode"""
def vmi_vstore(value: Logical, destination: Address, offset: Number, second: Logical | None = None, stride: Number | None = None, block_stride: Number | None = None, repeat_stride: Number | None = None, mask: Logical | None = None, *, dist_mode: str | None = None, group: int | None = None, pmode: str | None = None) -> None:
    """active lanes to destination + offset: a run, a row a group, or 32-byte blocks"""
def vmi_vsstb(value: Logical, destination: Address, offset: Number, block_stride: Number, mask: Logical, *, pmode: str | None = None) -> None:
    """active lanes to 32-byte blocks that are block_stride blocks apart"""
def vmi_vgather(source: Address, offsets: Logical, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """mask[i] ? UB[source + offsets[i] elements] : 0"""
def vmi_vgatherb(source: Address, offsets: Logical, mask: Logical, *, pmode: str | None = None, to: Kind | None = None) -> ValueHandle:
    """32-byte blocks from source + offsets[b] bytes, under the mask of their lanes"""
def vmi_vscatter(value: Logical, destination: Address, offsets: Logical, mask: Logical, *, pmode: str | None = None) -> None:
    """UB[destination + offsets[i] elements] = value[i] where mask[i]; the last lane wins"""
def vmi_group_load(source: Address, offset: Number, row_stride: Number, num_groups: int, *, to: Kind | None = None) -> ValueHandle:
    """a row of L / num_groups elements a group, row_stride elements apart"""
def vmi_group_slot_load(source: Address, offset: Number, source_group_stride: Number, num_groups: int, *, to: Kind | None = None) -> ValueHandle:
    """one element a group, source_group_stride elements apart"""
def vmi_group_broadcast_load(source: Address, offset: Number, source_group_stride: Number, num_groups: int, *, to: Kind | None = None) -> ValueHandle:
    """one element a group, in all its lanes, source_group_stride elements apart"""
def vmi_group_store(value: Logical, destination: Address, offset: Number, row_stride: Number, num_groups: int) -> None:
    """a row of L / num_groups elements a group, row_stride elements apart"""
def vmi_masked_load(source: Address, offset: Number, mask: Logical, passthru: Logical, *, to: Kind | None = None) -> ValueHandle:
    """active lanes from a run in memory, passthru elsewhere"""
def vmi_expand_load(source: Address, offset: Number, mask: Logical, passthru: Logical, *, to: Kind | None = None) -> ValueHandle:
    """consecutive elements into the active lanes, passthru elsewhere"""
def vmi_gather(source: Address, indices: Logical, mask: Logical, passthru: Logical, *, to: Kind | None = None) -> ValueHandle:
    """mask[i] ? UB[source + indices[i] elements] : passthru[i]"""
def vmi_scatter(value: Logical, destination: Address, indices: Logical, mask: Logical) -> None:
    """UB[destination + indices[i] elements] = value[i] where mask[i]"""
def vmi_compress_store(value: Logical, destination: Address, offset: Number, mask: Logical) -> None:
    """active lanes one after another from destination + offset on"""
def vmi_stride_load(source: Address, offset: Number, block_stride: Number, repeat_stride: Number, mask: Logical, *, to: Kind | None = None) -> ValueHandle:
    """32-byte blocks, block_stride blocks apart, under the mask of their lanes"""
def vmi_stride_store(value: Logical, destination: Address, offset: Number, block_stride: Number, repeat_stride: Number, mask: Logical) -> None:
    """active lanes to 32-byte blocks, block_stride blocks apart"""
def vmi_deinterleave_load(source: Address, offset: Number, *, to: Kind | None = None) -> tuple[ValueHandle, ValueHandle]:
    """even elements from source + offset on in low, odd ones in high"""
def vmi_interleave_store(low: Logical, high: Logical, destination: Address, offset: Number) -> None:
    """low and high in turn from destination + offset on"""
def mte_gm_ub(source: Address, destination: Address, l2_cache_ctl: Number, len_burst: Number, n_burst: Number, nburst_src_stride: Number, nburst_dst_stride: Number, loop_counts: list[Number] | Number | None = None, loop_src_strides: list[Number] | Number | None = None, loop_dst_strides: list[Number] | Number | None = None, pad_value: Number | None = None, left_padding_count: Number | None = None, right_padding_count: Number | None = None) -> None:
    """for each loop, r < n_burst: copy len_burst bytes from source + r*nburst_src_stride to destination + r*nburst_dst_stride; pad fills UB rows"""
def mte_ub_gm(source: Address, destination: Address, len_burst: Number, n_burst: Number, nburst_src_stride: Number, nburst_dst_stride: Number, l2_cache_ctl: Number | None = None, loop_counts: list[Number] | Number | None = None, loop_src_strides: list[Number] | Number | None = None, loop_dst_strides: list[Number] | Number | None = None) -> None:
    """for each loop, r < n_burst: copy len_burst bytes from source + r*nburst_src_stride to destination + r*nburst_dst_stride"""
def mte_ub_ub(source: Address, destination: Address, n_burst: Number, len_burst: Number, src_stride: Number, dst_stride: Number) -> None:
    """n_burst bursts of len_burst*32 bytes; after each, source and destination advance by (len_burst + gap)*32 bytes"""
def mte_ub_l1(source: Address, destination: Address, n_burst: Number, len_burst: Number, src_stride: Number, dst_stride: Number) -> None:
    """n_burst bursts of len_burst*32 bytes; after each, source and destination advance by (len_burst + gap)*32 bytes"""
def copy_gm_to_ubuf(source: Address, destination: Address, sid: Number, n_burst: Number, len_burst: Number, left_padding_count: Number, right_padding_count: Number, data_select_bit: Number, l2_cache_ctl: Number, gm_stride: Number, ub_stride: Number, *, has_pad: str | int | None = None) -> None:
    """n_burst bursts of len_burst bytes from global memory to UB, repeated by the outtoub loop registers"""
def copy_ubuf_to_gm(source: Address, destination: Address, sid: Number, n_burst: Number, len_burst: Number, reserved: Number, burst_dst_stride: Number, burst_src_stride: Number) -> None:
    """n_burst bursts of len_burst bytes from UB to global memory, repeated by the ubtoout loop registers"""
def copy_ubuf_to_ubuf(source: Address, destination: Address, sid: Number, n_burst: Number, len_burst: Number, src_stride: Number, dst_stride: Number) -> None:
    """n_burst bursts of len_burst*32 bytes from ub to ub, gaps of 32 bytes between"""
def copy_ubuf_to_cbuf(source: Address, destination: Address, sid: Number, n_burst: Number, len_burst: Number, src_stride: Number, dst_stride: Number) -> None:
    """n_burst bursts of len_burst*32 bytes from ub to l1, gaps of 32 bytes between"""
def copy_cbuf_to_ubuf(source: Address, destination: Address, sid: Number, n_burst: Number, len_burst: Number, src_stride: Number, dst_stride: Number) -> None:
    """n_burst bursts of len_burst*32 bytes from l1 to ub, gaps of 32 bytes between"""
def set_loop_size_outtoub(first: Number, second: Number) -> None:
    """loop counts of later copies from global memory to UB: first is loop2, second is loop1"""
def set_loop1_stride_outtoub(first: Number, second: Number) -> None:
    """loop1 strides of later copies from global memory to UB: first is the source's, second the destination's, in bytes"""
def set_loop2_stride_outtoub(first: Number, second: Number) -> None:
    """loop2 strides of later copies from global memory to UB: first is the source's, second the destination's, in bytes"""
def set_loop_size_ubtoout(first: Number, second: Number) -> None:
    """loop counts of later copies from UB to global memory: first is loop2, second is loop1"""
def set_loop1_stride_ubtoout(first: Number, second: Number) -> None:
    """loop1 strides of later copies from UB to global memory: first is the source's, second the destination's, in bytes"""
def set_loop2_stride_ubtoout(first: Number, second: Number) -> None:
    """loop2 strides of later copies from UB to global memory: first is the source's, second the destination's, in bytes"""
def set_loop_size_outtol1(value: Number) -> None:
    """loop counts of GM to L1 copies: loop2<<21 | loop1"""
def set_loop1_stride_outtol1(value: Number) -> None:
    """loop1 byte strides of GM to L1 copies: src | dst<<40"""
def set_loop2_stride_outtol1(value: Number) -> None:
    """loop2 byte strides of GM to L1 copies: src | dst<<40"""
def set_pad_val_outtol1(value: Number) -> None:
    """pad value of GM to L1 copies"""
def set_mte2_nz_para(value: Number) -> None:
    """nd2nz and dn2nz destination: group | loop2<<16 | loop3<<32 | loop4<<48, in 32 bytes"""
def set_quant_pre(value: Number) -> None:
    """scalar quantisation of the fixpipe: f32 bits"""
def set_relu_alpha(value: Number) -> None:
    """scalar relu slope of the fixpipe: f32 bits"""
def set_fix_clip_relu(value: Number) -> None:
    """clip value of the fixpipe: f16 bits or 16 bits of an integer"""
def set_fpc(value: Number) -> None:
    """fixpipe parameter addresses: relu (addr & 0xffff)>>6 in bits 7:0, quantisation (addr & 0xffff)>>7 in bits 15:8"""
def set_loop3_para(first: Number, second: Number) -> None:
    """fixpipe loop3: count | src_stride<<16 | dst_stride<<32; first has the low 40 bits, second the high 24"""
def set_channel_para(first: Number, second: Number) -> None:
    """fixpipe nz2dn: loop0_src_stride<<48; first has the low 40 bits, second the high 24"""
def set_mov_pad_val(value: Number) -> None:
    """pad value of later GM to UB copies with data_select_bit = 1"""
def set_atomic_f32() -> None:
    """later writes to global memory combine as f32"""
def set_atomic_f16() -> None:
    """later writes to global memory combine as f16"""
def set_atomic_s16() -> None:
    """later writes to global memory combine as i16"""
def set_atomic_s32() -> None:
    """later writes to global memory combine as i32"""
def set_atomic_s8() -> None:
    """later writes to global memory combine as i8"""
def set_atomic_bf16() -> None:
    """later writes to global memory combine as bf16"""
def set_atomic_none() -> None:
    """later writes to global memory replace what is there"""
def set_atomic_add() -> None:
    """later writes to global memory add to what is there"""
def set_atomic_max() -> None:
    """later writes to global memory keep the larger"""
def set_atomic_min() -> None:
    """later writes to global memory keep the smaller"""
def raw_fill_l1(dst: Address, byte_offset: Number, raw_value: Number, repeat_times: Number, block_num_32b: Number, dst_gap_32b: Number, fill_word_bits: int) -> None:
    """for r < repeat_times: block_num_32b blocks of 32 bytes get the words of raw_value, dst_gap_32b blocks are left out"""
def mte_gm_l1(source: Address, destination: Address, len_burst: Number, n_burst: Number, nburst_src_stride: Number, nburst_dst_stride: Number, loop_counts: list[Number] | Number | None = None, loop_src_strides: list[Number] | Number | None = None, loop_dst_strides: list[Number] | Number | None = None) -> None:
    """for each loop, r < n_burst: copy len_burst bytes from source + r*nburst_src_stride to destination + r*nburst_dst_stride; no layout change"""
def mte_l1_ub(source: Address, destination: Address, len_burst: Number, n_burst: Number, nburst_src_stride: Number, nburst_dst_stride: Number, loop_counts: list[Number] | Number | None = None, loop_src_strides: list[Number] | Number | None = None, loop_dst_strides: list[Number] | Number | None = None) -> None:
    """n_burst bursts of len_burst*32 bytes; after each, source and destination advance by (len_burst + gap)*32 bytes; loops advance by bytes"""
def mte_gm_l1_frac(source: Address, destination: Address, n_value: Number, d_value: Number, src_inner_stride: Number, group_count: Number, dst_loop2_stride: Number, dst_loop3_stride: Number, dst_loop4_stride: Number, l2_cache_ctrl: Number, smallc0_en: Number, mode: str | int, src_outer_stride: Number | None = None) -> None:
    """v[n,d] = source[g*outer + n*inner + d*E] (nd2nz) or source[g*outer + d*inner + n*E] (dn2nz) to destination + 32*(g*loop4 + d/C0*loop3 + n*loop2) + d%C0*E, with C0 = 32/E"""
def mte_l1_l0a(source: Address, destination: Address, m: Number, k: Number, start_row: Number | None = None, start_col: Number | None = None, *, transpose: bool | None = None) -> None:
    """the NZ tile [m,k], or [k,m] with transpose in L1 becomes the m x k operand in l0a"""
def mte_l1_l0b(source: Address, destination: Address, k: Number, n: Number, start_row: Number | None = None, start_col: Number | None = None, *, transpose: bool | None = None) -> None:
    """the NZ tile [n,k], or [k,n] with transpose in L1 becomes the k x n operand in l0b"""
def mte_l1_l0a_mx(source: Address, destination: Address, m: Number, k: Number, start_row: Number | None = None, start_col: Number | None = None) -> None:
    """load scale[m][k/32] of the left tile: bytes b that stand for 2^(b-127)"""
def mte_l1_l0b_mx(source: Address, destination: Address, k: Number, n: Number, start_row: Number | None = None, start_col: Number | None = None) -> None:
    """load scale[k/32][n] of the right tile, n-major: bytes b that stand for 2^(b-127)"""
def mte_l1_bt(source: Address, destination: Address, len_burst: Number, n_burst: Number, nburst_src_gap: Number, nburst_dst_gap: Number) -> None:
    """bias values from L1 to the bias table, f16 and bf16 widened; len_burst and gaps count 32 bytes of source"""
def mte_l1_fb(source: Address, destination: Address, len_burst: Number, n_burst: Number, nburst_src_gap: Number, nburst_dst_gap: Number) -> None:
    """parameters from L1 to the fixpipe buffer, as they are; len_burst and gaps count 64 bytes"""
def copy_gm_to_cbuf(source: Address, destination: Address, n_burst: Number, len_burst: Number, src_stride: Number, dst_stride: Number) -> None:
    """n_burst bursts of len_burst bytes, repeated by the outtol1 loop registers"""
def copy_gm_to_cbuf_multi_nd2nz(source: Address, destination: Address, sid: Number, loop1_src_stride: Number, l2_cache_ctrl: Number, n_value: Number, d_value: Number, loop4_src_stride: Number, smallc0_en: Number) -> None:
    """mte_gm_l1_frac nd2nz, its destination pattern in set_mte2_nz_para"""
def copy_gm_to_cbuf_multi_dn2nz(source: Address, destination: Address, sid: Number, loop1_src_stride: Number, l2_cache_ctrl: Number, n_value: Number, d_value: Number, loop4_src_stride: Number, smallc0_en: Number) -> None:
    """mte_gm_l1_frac dn2nz, its destination pattern in set_mte2_nz_para"""
def copy_cbuf_to_bt(source: Address, destination: Address, conv_control: Number, n_burst: Number, len_burst: Number, source_gap: Number, dst_gap: Number) -> None:
    """L1 to bias table in units of 32 bytes; conv_control widens f16 to f32"""
def copy_cbuf_to_fbuf(source: Address, destination: Address, n_burst: Number, len_burst: Number, source_gap: Number, dst_gap: Number) -> None:
    """L1 to fixpipe buffer in units of 64 bytes"""
def load_cbuf_to_ca_s4(source: Address, destination: Address, m_start: Number, k_start: Number, m_step: Number, k_step: Number, src_stride: Number, dst_stride: Number, transpose: Number) -> None:
    """load_cbuf_to_ca for 4-bit elements; transpose is an operand"""
def load_cbuf_to_cb_s4(source: Address, destination: Address, m_start: Number, k_start: Number, m_step: Number, k_step: Number, src_stride: Number, dst_stride: Number, transpose: Number) -> None:
    """load_cbuf_to_cb for 4-bit elements; transpose is an operand"""
def load_cbuf_to_ca(source: Address, destination: Address, m_start: Number, k_start: Number, m_step: Number, k_step: Number, src_stride: Number, dst_stride: Number, *, transpose: bool | None = None) -> None:
    """L1 to l0a by fractals of 512 bytes: start, step and stride count fractals, m in 16 rows, k in 32 bytes"""
def load_cbuf_to_cb(source: Address, destination: Address, m_start: Number, k_start: Number, m_step: Number, k_step: Number, src_stride: Number, dst_stride: Number, *, transpose: bool | None = None) -> None:
    """L1 to l0b by fractals of 512 bytes: start, step and stride count fractals, m in 16 rows, k in 32 bytes"""
def load_cbuf_to_ca_mx(source: Address, destination: Address, m: Number, k: Number) -> None:
    """MX scales from L1 to the side of l0a"""
def load_cbuf_to_cb_mx(source: Address, destination: Address, x_start_position: Number, y_start_position: Number, x_step: Number, y_step: Number, src_stride: Number, dst_stride: Number) -> None:
    """MX scales from L1 to the side of l0b"""
def mad(lhs: Address, rhs: Address, dst: Address, m: Number, n: Number, k: Number, *, unit_flag_mode: str | int | None = None, disable_gemv: str | int | None = None, sat_mode: str | int | None = None, tf32_mode: str | int | None = None, n_dir: str | int | None = None) -> None:
    """dst[m,n] = sum over k of lhs[m,k]*rhs[k,n]"""
def mad_acc(lhs: Address, rhs: Address, dst: Address, m: Number, n: Number, k: Number, *, unit_flag_mode: str | int | None = None, disable_gemv: str | int | None = None, sat_mode: str | int | None = None, tf32_mode: str | int | None = None, n_dir: str | int | None = None) -> None:
    """dst[m,n] += sum over k of lhs[m,k]*rhs[k,n]"""
def mad_bias(lhs: Address, rhs: Address, dst: Address, bias: Address, m: Number, n: Number, k: Number, *, unit_flag_mode: str | int | None = None, disable_gemv: str | int | None = None, sat_mode: str | int | None = None, tf32_mode: str | int | None = None, n_dir: str | int | None = None) -> None:
    """dst[m,n] = sum over k of lhs[m,k]*rhs[k,n], plus bias[n]"""
def mad_mx(lhs: Address, rhs: Address, dst: Address, m: Number, n: Number, k: Number, *, unit_flag_mode: str | int | None = None, disable_gemv: str | int | None = None, sat_mode: str | int | None = None, n_dir: str | int | None = None) -> None:
    """dst[m,n] = sum over k of lhs[m,k]*2^(sa[m,k/32]-127) * rhs[k,n]*2^(sb[k/32,n]-127)"""
def mad_mx_acc(lhs: Address, rhs: Address, dst: Address, m: Number, n: Number, k: Number, *, unit_flag_mode: str | int | None = None, disable_gemv: str | int | None = None, sat_mode: str | int | None = None, n_dir: str | int | None = None) -> None:
    """dst[m,n] += sum over k of lhs[m,k]*2^(sa[m,k/32]-127) * rhs[k,n]*2^(sb[k/32,n]-127)"""
def mad_mx_bias(lhs: Address, rhs: Address, dst: Address, bias: Address, m: Number, n: Number, k: Number, *, unit_flag_mode: str | int | None = None, disable_gemv: str | int | None = None, sat_mode: str | int | None = None, n_dir: str | int | None = None) -> None:
    """dst[m,n] = sum over k of lhs[m,k]*2^(sa[m,k/32]-127) * rhs[k,n]*2^(sb[k/32,n]-127), plus bias[n]"""
def mad_raw(lhs: Address, rhs: Address, dst: Address, xt: Number) -> None:
    """mad with its sizes in one word: xt = m | k<<12 | n<<24 | unit flag<<55 | disable_gemv<<61 | bias<<62 | clear first<<63"""
def mad_bias_raw(lhs: Address, rhs: Address, dst: Address, bias: Address, xt: Number) -> None:
    """mad_bias with its sizes in one word: xt = m | k<<12 | n<<24 | unit flag<<55 | disable_gemv<<61 | bias<<62 | clear first<<63"""
def mad_mx_raw(lhs: Address, rhs: Address, dst: Address, xt: Number) -> None:
    """mad_mx with its sizes in one word: xt = m | k<<12 | n<<24 | unit flag<<55 | disable_gemv<<61 | bias<<62 | clear first<<63"""
def mad_mx_bias_raw(lhs: Address, rhs: Address, dst: Address, bias: Address, xt: Number) -> None:
    """mad_mx_bias with its sizes in one word: xt = m | k<<12 | n<<24 | unit flag<<55 | disable_gemv<<61 | bias<<62 | clear first<<63"""
def mte_l0c_l1(source: Address, destination: Address, m: Number, n: Number, src_stride: Number, dst_stride: Number, pre_quant: Number | Address | None = None, pre_relu: Number | Address | None = None, clip_value: Number | None = None, split: Number | None = None, loop0_src_stride: Number | None = None, loop3_count: Number | None = None, loop3_src_stride: Number | None = None, loop3_dst_stride: Number | None = None, *, mode: str | int | None = None, unit_flag: str | int | None = None, pre_quant_mode: str | int | None = None, pre_relu_mode: str | int | None = None, sat_mode: str | int | None = None) -> None:
    """destination in L1 = convert(clip(relu(quantise(source[m,n]))))"""
def mte_l0c_gm(source: Address, destination: Address, m: Number, n: Number, src_stride: Number, dst_stride: Number, sid: Number, l2_cache_ctrl: Number, pre_quant: Number | Address | None = None, pre_relu: Number | Address | None = None, clip_value: Number | None = None, split: Number | None = None, loop0_src_stride: Number | None = None, loop3_count: Number | None = None, loop3_src_stride: Number | None = None, loop3_dst_stride: Number | None = None, *, mode: str | int | None = None, unit_flag: str | int | None = None, pre_quant_mode: str | int | None = None, pre_relu_mode: str | int | None = None, sat_mode: str | int | None = None, atomic_type: str | int | None = None, atomic_op: str | int | None = None) -> None:
    """destination in global memory = convert(clip(relu(quantise(source[m,n])))), or combined with what is there"""
def mte_l0c_ub(source: Address, destination: Address, m: Number, n: Number, src_stride: Number, dst_stride: Number, dst_mode: str | int, pre_quant: Number | Address | None = None, pre_relu: Number | Address | None = None, clip_value: Number | None = None, sub_blockid: Number | None = None, split: Number | None = None, loop0_src_stride: Number | None = None, loop3_count: Number | None = None, loop3_src_stride: Number | None = None, loop3_dst_stride: Number | None = None, *, mode: str | int | None = None, unit_flag: str | int | None = None, pre_quant_mode: str | int | None = None, pre_relu_mode: str | int | None = None, sat_mode: str | int | None = None) -> None:
    """destination in UB of one vector sub-block, or half of it in each = convert(clip(relu(quantise(source[m,n]))))"""
def copy_matrix_cc_to_gm(source: Address, destination: Address, xm: Number, xt: Number) -> None:
    """L0C to gm, everything in two words: config0 = sid | n<<4 | m<<16 | dst_stride<<32; config1 = src_stride | l2<<16 | quant[5]<<29 | clip<<30 | unit flag<<32 | quant[4:0]<<34 | relu<<39 | split<<42 | nz2nd<<43 | nz2dn<<62"""
def copy_matrix_cc_to_cbuf(source: Address, destination: Address, config0: Number, config1: Number) -> None:
    """L0C to l1, everything in two words: config0 = sid | n<<4 | m<<16 | dst_stride<<32; config1 = src_stride | l2<<16 | quant[5]<<29 | clip<<30 | unit flag<<32 | quant[4:0]<<34 | relu<<39 | split<<42 | nz2nd<<43 | nz2dn<<62"""
def copy_matrix_cc_to_ub(source: Address, destination: Address, config0: Number, config1: Number) -> None:
    """L0C to ub, everything in two words: config0 = sid | n<<4 | m<<16 | dst_stride<<32; config1 = src_stride | dual<<16 | sub-block<<18 | quant[5]<<29 | clip<<30 | unit flag<<32 | quant[4:0]<<34 | relu<<39 | split<<42 | nz2nd<<43 | nz2dn<<62"""

def provide(functions: Callable[[], ModuleType]) -> None: ...
