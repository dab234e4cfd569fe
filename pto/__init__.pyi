# The public names of `pto`. Written by `python -m pto.lang.stubs`: do not edit.
# ruff: noqa
# fmt: off
from pto.cluster.on import on as on
from pto.core.errors import Diagnostic as Diagnostic
from pto.core.errors import Loc as Loc
from pto.core.errors import Note as Note
from pto.core.errors import PtoError as PtoError
from pto.core.findings import Findings as Findings
from pto.cxx.export.folder import Exported as Exported
from pto.cxx.kernel import CppKernel as CppKernel
from pto.cxx.kernel import cpp as cpp
from pto.graphs.python import GraphReport as GraphReport
from pto.graphs.python import TaskGraph as TaskGraph
from pto.graphs.python import graph as graph
from pto.ir.graph import Module as Module
from pto.ir.text.parser import parse as parse
from pto.ir.text.parser import parse_file as parse_file
from pto.ir.text.printer import print_module as print_module
from pto.lang.bound import Bound as Bound
from pto.lang.call.place import KernelError as KernelError
from pto.lang.control import Else as Else
from pto.lang.control import If as If
from pto.lang.control import block_idx as block_idx
from pto.lang.control import block_num as block_num
from pto.lang.control import carry as carry
from pto.lang.control import range as range
from pto.lang.control import section_cube as section_cube
from pto.lang.control import section_vector as section_vector
from pto.lang.control import static_range as static_range
from pto.lang.control import subblock_idx as subblock_idx
from pto.lang.control import subblock_num as subblock_num
from pto.lang.control import vecscope as vecscope
from pto.lang.debug import assert_ as assert_
from pto.lang.define import kernel as kernel
from pto.lang.define import pair as pair
from pto.lang.diff.diff import diff as diff
from pto.lang.diff.difference import Difference as Difference
from pto.lang.eager import Eager as Eager
from pto.lang.eager import eager as eager
from pto.lang.express.activations import clamp as clamp
from pto.lang.express.activations import erf as erf
from pto.lang.express.activations import gelu as gelu
from pto.lang.express.activations import sigmoid as sigmoid
from pto.lang.express.activations import silu as silu
from pto.lang.express.activations import softmax as softmax
from pto.lang.express.activations import tanh as tanh
from pto.lang.express.choose import full_like as full_like
from pto.lang.express.choose import where as where
from pto.lang.express.choose import zeros_like as zeros_like
from pto.lang.express.functions import exp as exp
from pto.lang.express.functions import leaky_relu as leaky_relu
from pto.lang.express.functions import log as log
from pto.lang.express.functions import maximum as maximum
from pto.lang.express.functions import minimum as minimum
from pto.lang.express.functions import reciprocal as reciprocal
from pto.lang.express.functions import relu as relu
from pto.lang.express.functions import rsqrt as rsqrt
from pto.lang.express.functions import sqrt as sqrt
from pto.lang.express.memory import arange as arange
from pto.lang.express.memory import full as full
from pto.lang.express.memory import load as load
from pto.lang.express.memory import store as store
from pto.lang.express.memory import tri as tri
from pto.lang.express.memory import zeros as zeros
from pto.lang.express.order import argsort as argsort
from pto.lang.express.order import cumsum as cumsum
from pto.lang.express.order import flip as flip
from pto.lang.express.order import sort as sort
from pto.lang.express.order import topk as topk
from pto.lang.express.product import dot as dot
from pto.lang.kernel import Kernel as Kernel
from pto.lang.program import check as check
from pto.lang.torch_op import torch_op as torch_op
from pto.lang.trial import Trial as Trial
from pto.lang.tune import Autotuned as Autotuned
from pto.lang.tune import Tuning as Tuning
from pto.lang.tune import autotune as autotune
from pto.lang.tune import tune as tune
from pto.lang.values.annotations import Global as Global
from pto.lang.values.annotations import Scalar as Scalar
from pto.lang.values.registers import Mask as Mask
from pto.lang.values.registers import Pointer as Pointer
from pto.lang.values.registers import Vreg as Vreg
from pto.lang.values.scalars import cdiv as cdiv
from pto.lang.values.scalars import scalar as scalar
from pto.lang.values.scalars import select as select
from pto.lang.values.tiles import Tile as Tile
from pto.lang.values.tiles import assign as assign
from pto.lang.values.tiles import set_validshape as set_validshape
from pto.lang.values.tiles import tile as tile
from pto.lang.values.tiles import tile_type as tile_type
from pto.lang.values.views import View as View
from pto.observe.memory.coverage import Coverage as Coverage
from pto.observe.proofs import Proofs as Proofs
from pto.observe.sanitize import Verdict as Verdict
from pto.observe.sanitize import sanitize as sanitize
from pto.observe.timing import Timing as Timing
from pto.run.launch.call import Launch as Launch
from pto.run.launch.call import PtoWarning as PtoWarning
from pto.run.launch.host import Report as Report
from pto.run.launch.host import launch as launch
from pto.run.machine.device import Device as Device
from pto.run.machine.stream import Event as Event
from pto.run.machine.stream import Graph as Graph
from pto.run.machine.stream import Stream as Stream
from pto.run.machine.world import World as World
from pto.run.watch.step import Stepper as Stepper
from pto.run.watch.step import Stop as Stop
from pto.view.side import Side as Side
from pto.view.side import side_by_side as side_by_side
from pto import observe as observe
from pto.lang.express.functions import absolute as _absolute
abs = _absolute
from pto.lang.express.functions import maximum as _maximum
max = _maximum
from pto.lang.express.functions import minimum as _minimum
min = _minimum
from pto.lang.debug import print_ as _print_
print = _print_
from pto.lang.express.functions import total as _total
sum = _total
from pto.lang.values.elements import *
from pto.lang.call.instructions import *

__all__ = ["Autotuned", "Bound", "Coverage", "CppKernel", "Device", "Diagnostic", "Difference", "Eager", "Else", "Event", "Exported", "Findings", "Global", "Graph", "GraphReport", "If", "Kernel", "KernelError", "Launch", "Loc", "Mask", "Module", "Note", "Pointer", "Proofs", "PtoError", "PtoWarning", "Report", "Scalar", "Side", "Stepper", "Stop", "Stream", "TaskGraph", "Tile", "Timing", "Trial", "Tuning", "Verdict", "View", "Vreg", "World", "addptr", "aic_initialize_pipe", "aiv_initialize_pipe", "alloc_multi_tile", "arange", "argsort", "assert_", "assign", "autotune", "barrier", "barrier_sync", "bf16", "bf16x2", "bind_tile", "bitcast", "block_idx", "block_num", "carry", "castptr", "cdiv", "check", "chistv2", "clamp", "cmo_cacheinvalid", "comm_build_async_session", "comm_tbroadcast", "comm_test_async_event", "comm_tgather", "comm_tget", "comm_tget_async", "comm_tnotify", "comm_tput", "comm_tput_async", "comm_treduce", "comm_tscatter", "comm_ttest", "comm_twait", "comm_wait_async_event", "copy_cbuf_to_bt", "copy_cbuf_to_fbuf", "copy_cbuf_to_ubuf", "copy_gm_to_cbuf", "copy_gm_to_cbuf_multi_dn2nz", "copy_gm_to_cbuf_multi_nd2nz", "copy_gm_to_ubuf", "copy_matrix_cc_to_cbuf", "copy_matrix_cc_to_gm", "copy_matrix_cc_to_ub", "copy_ubuf_to_cbuf", "copy_ubuf_to_gm", "copy_ubuf_to_ubuf", "cpp", "cumsum", "dcci", "declare_eventid_array", "declare_global", "declare_local_array", "declare_struct", "declare_tile", "declare_tile_memref", "dhistv2", "diff", "dot", "dsb", "e8m0", "eager", "erf", "eventid_array_get", "eventid_array_set", "exp", "f16", "f32", "f64", "f8e4m3", "f8e5m2", "fence_barrier_all", "flip", "float4_e1m2x2", "float4_e2m1x2", "full", "full_like", "gelu", "get_block_idx", "get_block_num", "get_buf", "get_buf_dyn", "get_ctrl", "get_prefetch_async_session", "get_subblock_idx", "get_subblock_num", "get_tensor_view_dim", "get_tensor_view_stride", "get_validshape", "get_vms4_sr", "graph", "hifloat8", "i1", "i16", "i32", "i4x2", "i64", "i8", "import_reserved_buffer", "init_align", "initialize_l2g2l_pipe", "initialize_l2l_pipe", "inttoptr", "kernel", "launch", "ld_dev", "leaky_relu", "load", "load_cbuf_to_ca", "load_cbuf_to_ca_mx", "load_cbuf_to_ca_s4", "load_cbuf_to_cb", "load_cbuf_to_cb_mx", "load_cbuf_to_cb_s4", "load_scalar", "local_array_get", "local_array_set", "log", "mad", "mad_acc", "mad_bias", "mad_bias_raw", "mad_mx", "mad_mx_acc", "mad_mx_bias", "mad_mx_bias_raw", "mad_mx_raw", "mad_raw", "make_prefetch_async_context", "materialize_tile", "maximum", "mem_bar", "mgather", "minimum", "mscatter", "mte_gm_l1", "mte_gm_l1_frac", "mte_gm_ub", "mte_l0c_gm", "mte_l0c_l1", "mte_l0c_ub", "mte_l1_bt", "mte_l1_fb", "mte_l1_l0a", "mte_l1_l0a_mx", "mte_l1_l0b", "mte_l1_l0b_mx", "mte_l1_ub", "mte_ub_gm", "mte_ub_l1", "mte_ub_ub", "multi_tile_get", "observe", "on", "pair", "pand", "parse", "parse_file", "pbitcast", "pdintlv_b16", "pdintlv_b32", "pdintlv_b8", "pge_b16", "pge_b32", "pge_b8", "pintlv_b16", "pintlv_b32", "pintlv_b8", "pld", "pldi", "plds", "plt_b16", "plt_b32", "plt_b8", "pltm_b16", "pltm_b32", "pltm_b8", "pnot", "pointer_cast", "por", "ppack", "print_module", "psel", "pset_b16", "pset_b32", "pset_b8", "pst", "psti", "psts", "pstu", "ptrtoint", "punpack", "pxor", "raw_fill_l1", "reciprocal", "record_event", "relu", "reserve_buffer", "rls_buf", "rls_buf_dyn", "rsqrt", "sanitize", "sbitset0", "sbitset1", "scalar", "section_cube", "section_vector", "select", "set_atomic_add", "set_atomic_bf16", "set_atomic_f16", "set_atomic_f32", "set_atomic_max", "set_atomic_min", "set_atomic_none", "set_atomic_s16", "set_atomic_s32", "set_atomic_s8", "set_channel_para", "set_cross_block", "set_cross_core", "set_ctrl", "set_ffts", "set_fix_clip_relu", "set_flag", "set_flag_dyn", "set_fpc", "set_img2col_padding", "set_img2col_rpt", "set_intra_block", "set_loop1_stride_outtol1", "set_loop1_stride_outtoub", "set_loop1_stride_ubtoout", "set_loop2_stride_outtol1", "set_loop2_stride_outtoub", "set_loop2_stride_ubtoout", "set_loop3_para", "set_loop_size_outtol1", "set_loop_size_outtoub", "set_loop_size_ubtoout", "set_mov_pad_val", "set_mte2_nz_para", "set_pad_val_outtol1", "set_quant_pre", "set_quant_scalar", "set_quant_vector", "set_relu_alpha", "set_validshape", "setfmatrix", "sethf32mode", "settf32mode", "side_by_side", "sigmoid", "silu", "simd_tile_to_memref", "softmax", "sort", "sprclr", "sprsti", "sprsts", "sqrt", "st_dev", "static_range", "store", "store_scalar", "struct_get", "struct_set", "subblock_idx", "subblock_num", "sync_set", "sync_wait", "syncall", "tabs", "tadd", "taddc", "tadddeqrelu", "taddrelu", "taddreluconv", "tadds", "taddsc", "talias", "talloc", "talloc_to_aic", "talloc_to_aiv", "tand", "tands", "tanh", "tassign", "taxpy", "tci", "tcmp", "tcmps", "tcolargmax", "tcolargmin", "tcolexpand", "tcolexpandadd", "tcolexpanddiv", "tcolexpandexpdif", "tcolexpandmax", "tcolexpandmin", "tcolexpandmul", "tcolexpandsub", "tcolmax", "tcolmin", "tcolprod", "tcolsum", "tconcat", "tconcatidx", "tcvt", "tdeinterleave", "tdequant", "tdiv", "tdivs", "tensor_view_addr", "texp", "texpands", "textract", "textract_fp", "tfillpad", "tfillpad_expand", "tfillpad_inplace", "tfmod", "tfmods", "tfree", "tfree_from_aic", "tfree_from_aiv", "tfusedmuladd", "tfusedmuladdrelu", "tgather", "tgatherb", "tgemv", "tgemv_acc", "tgemv_bias", "tgemv_mx", "tgemv_mx_acc", "tgemv_mx_bias", "tget_scale_addr", "tgetval", "thistogram", "tile", "tile_buf_addr", "tile_type", "tile_valid_cols", "tile_valid_rows", "timg2col", "tinsert", "tinsert_fp", "tinterleave", "tload", "tload_conv", "tlog", "tlrelu", "tmatmul", "tmatmul_acc", "tmatmul_bias", "tmatmul_mx", "tmatmul_mx_acc", "tmatmul_mx_bias", "tmax", "tmaxs", "tmin", "tmins", "tmov", "tmov_fp", "tmrgsort", "tmul", "tmuladddst", "tmuls", "tneg", "tnot", "topk", "tor", "torch_op", "tors", "tpack", "tpairreducesum", "tpartadd", "tpartargmax", "tpartargmin", "tpartmax", "tpartmin", "tpartmul", "tpop", "tpop_from_aic", "tpop_from_aiv", "tpow", "tpows", "tprefetch", "tprefetch_async", "tprelu", "tprint", "tpush", "tpush_to_aic", "tpush_to_aiv", "tquant", "tquant_mx", "trandom", "trap", "trecip", "trelu", "trem", "trems", "treshape", "tri", "trowargmax", "trowargmin", "trowexpand", "trowexpandadd", "trowexpanddiv", "trowexpandexpdif", "trowexpandmax", "trowexpandmin", "trowexpandmul", "trowexpandsub", "trowmax", "trowmin", "trowprod", "trowsum", "trsqrt", "tscatter", "tsel", "tsels", "tsetval", "tshl", "tshls", "tshr", "tshrs", "tsort32", "tsqrt", "tstore", "tstore_fp", "tsub", "tsubc", "tsubrelu", "tsubreluconv", "tsubs", "tsubsc", "tsubview", "tsync", "ttrans", "ttrans_conv", "ttri", "tune", "txor", "txors", "u16", "u32", "u64", "u8", "ub_set_mask", "ub_set_mask_count", "ub_set_mask_norm", "ub_vabs", "ub_vadd", "ub_vaddrelu", "ub_vadds", "ub_vand", "ub_vdiv", "ub_vdup", "ub_vexp", "ub_vln", "ub_vmax", "ub_vmaxs", "ub_vmin", "ub_vmins", "ub_vmul", "ub_vmuls", "ub_vnot", "ub_vor", "ub_vrelu", "ub_vrsqrt", "ub_vshl", "ub_vshr", "ub_vsqrt", "ub_vsub", "uvld", "vabs", "vadd", "vaddc", "vaddcs", "vaddrelu", "vaddreluconv", "vadds", "vand", "vands", "vaxpy", "vbcnt", "vbitcast", "vbitsort", "vbr", "vcadd", "vcbmax", "vcbmin", "vcgadd", "vcgmax", "vcgmin", "vci", "vcls", "vcmax", "vcmin", "vcmp", "vcmps", "vcpadd", "vcvt", "vdintlv", "vdintlvv2", "vdiv", "vdup", "vecscope", "vexp", "vexpdif", "vgather2", "vgather2_bc", "vgatherb", "vintlv", "vintlvv2", "vldas", "vlds", "vldsx2", "vldus", "vln", "vlrelu", "vmadd", "vmax", "vmaxs", "vmi_active_prefix_index", "vmi_channel_merge", "vmi_channel_split", "vmi_cmpf", "vmi_cmpi", "vmi_compress", "vmi_compress_store", "vmi_constant", "vmi_constant_mask", "vmi_create_group_mask", "vmi_create_mask", "vmi_deinterleave_load", "vmi_ensure_layout", "vmi_ensure_mask_granularity", "vmi_ensure_mask_layout", "vmi_expand_load", "vmi_extsi", "vmi_extui", "vmi_fma", "vmi_fptosi", "vmi_fptoui", "vmi_gather", "vmi_group_broadcast_load", "vmi_group_load", "vmi_group_slot_load", "vmi_group_store", "vmi_interleave_store", "vmi_masked_load", "vmi_pack", "vmi_pge", "vmi_plt", "vmi_pset", "vmi_scatter", "vmi_shrsi", "vmi_shrui", "vmi_shuffle", "vmi_sitofp", "vmi_stride_load", "vmi_stride_store", "vmi_unpack", "vmi_vabs", "vmi_vadd", "vmi_vaddc", "vmi_vaddcs", "vmi_vadds", "vmi_vand", "vmi_vaxpy", "vmi_vbrc", "vmi_vcadd", "vmi_vchist", "vmi_vci", "vmi_vcmax", "vmi_vcmin", "vmi_vcmp", "vmi_vcmps", "vmi_vcvt", "vmi_vdhist", "vmi_vdintlv", "vmi_vdiv", "vmi_vexp", "vmi_vexpdif", "vmi_vgather", "vmi_vgatherb", "vmi_vinterpret_cast", "vmi_vintlv", "vmi_vln", "vmi_vload", "vmi_vlrelu", "vmi_vmax", "vmi_vmaxs", "vmi_vmin", "vmi_vmins", "vmi_vmul", "vmi_vmula", "vmi_vmull", "vmi_vmuls", "vmi_vneg", "vmi_vnot", "vmi_vor", "vmi_vprelu", "vmi_vrelu", "vmi_vscatter", "vmi_vsel", "vmi_vselr", "vmi_vshl", "vmi_vshls", "vmi_vshr", "vmi_vshrs", "vmi_vsqrt", "vmi_vsstb", "vmi_vstore", "vmi_vsub", "vmi_vxor", "vmin", "vmins", "vmov", "vmrgsort4", "vmul", "vmula", "vmulconv", "vmull", "vmuls", "vmulscvt", "vneg", "vnot", "vor", "vors", "vpack", "vperm", "vprelu", "vrec", "vrelu", "vrsqrt", "vscatter", "vsel", "vselr", "vselrv2", "vshift", "vshl", "vshls", "vshr", "vshrs", "vsld", "vsldb", "vslide", "vsort32", "vsqrt", "vsqz", "vsst", "vsstb", "vsta", "vstar", "vstas", "vsts", "vstsx2", "vstu", "vstur", "vstus", "vsub", "vsubc", "vsubcs", "vsubrelu", "vsubs", "vsunpack", "vtranspose", "vtrc", "vusqz", "vxor", "vxors", "vzunpack", "wait_cross_block", "wait_event", "wait_flag", "wait_flag_dev", "wait_flag_dyn", "wait_intra_block", "where", "zeros", "zeros_like"]

__version__: str
