# The public names of `pto`. Written by `python -m pto.lang.stubs`: do not edit.
# ruff: noqa
# fmt: off
from pto.cluster.on import on as on
from pto.core.errors import Diagnostic as Diagnostic
from pto.core.errors import PtoError as PtoError
from pto.core.findings import Findings as Findings
from pto.cxx.export.folder import Exported as Exported
from pto.cxx.kernel import CppKernel as CppKernel
from pto.cxx.kernel import cpp as cpp
from pto.graphs.python import TaskGraph as TaskGraph
from pto.graphs.python import graph as graph
from pto.ir.graph import Module as Module
from pto.ir.text.parser import parse as parse
from pto.ir.text.parser import parse_file as parse_file
from pto.ir.text.printer import print_module as print_module
from pto.judging.judgement import Judgement as Judgement
from pto.judging.pool import judge as judge
from pto.lang.call.place import KernelError as KernelError
from pto.lang.control import block_idx as block_idx
from pto.lang.control import block_num as block_num
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
from pto.lang.eager import eager as eager
from pto.lang.express.activations import clamp as clamp
from pto.lang.express.activations import erf as erf
from pto.lang.express.activations import gelu as gelu
from pto.lang.express.activations import sigmoid as sigmoid
from pto.lang.express.activations import silu as silu
from pto.lang.express.activations import softmax as softmax
from pto.lang.express.activations import tanh as tanh
from pto.lang.express.arrange import concatenate as concatenate
from pto.lang.express.arrange import reshape as reshape
from pto.lang.express.choose import full_like as full_like
from pto.lang.express.choose import where as where
from pto.lang.express.choose import zeros_like as zeros_like
from pto.lang.express.convert import ceil as ceil
from pto.lang.express.convert import floor as floor
from pto.lang.express.functions import exp as exp
from pto.lang.express.functions import exp2 as exp2
from pto.lang.express.functions import leaky_relu as leaky_relu
from pto.lang.express.functions import log as log
from pto.lang.express.functions import log2 as log2
from pto.lang.express.functions import maximum as maximum
from pto.lang.express.functions import minimum as minimum
from pto.lang.express.functions import reciprocal as reciprocal
from pto.lang.express.functions import relu as relu
from pto.lang.express.functions import rsqrt as rsqrt
from pto.lang.express.functions import sqrt as sqrt
from pto.lang.express.gather import take as take
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
from pto.lang.express.trigonometry import cos as cos
from pto.lang.express.trigonometry import sin as sin
from pto.lang.kernel import Kernel as Kernel
from pto.lang.operator import Operator as Operator
from pto.lang.operator import operator as operator
from pto.lang.optimize import OptimizedKernel as OptimizedKernel
from pto.lang.program import check as check
from pto.lang.torch_op import torch_op as torch_op
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
from pto.observe.proofs import Proofs as Proofs
from pto.observe.sanitize import Verdict as Verdict
from pto.observe.sanitize import sanitize as sanitize
from pto.observe.timing import Timing as Timing
from pto.optimize.report import Optimization as Optimization
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
from pto.view.side import side_by_side as side_by_side
from pto import isa as isa
from pto import observe as observe
from pto.lang.express.functions import absolute as _absolute
abs = _absolute
from pto.lang.express.functions import maximum as _maximum
max = _maximum
from pto.lang.express.functions import minimum as _minimum
min = _minimum
from pto.lang.debug import print_ as _print_
print = _print_
from pto.lang.express.convert import round_ as _round_
round = _round_
from pto.lang.express.functions import total as _total
sum = _total
from pto.lang.values.elements import *

__all__ = ["CppKernel", "Device", "Diagnostic", "Event", "Exported", "Findings", "Global", "Graph", "Judgement", "Kernel", "KernelError", "Launch", "Mask", "Module", "Operator", "Optimization", "OptimizedKernel", "Pointer", "Proofs", "PtoError", "PtoWarning", "Report", "Scalar", "Stepper", "Stop", "Stream", "TaskGraph", "Tile", "Timing", "Tuning", "Verdict", "View", "Vreg", "World", "arange", "argsort", "assert_", "assign", "autotune", "bf16", "bf16x2", "block_idx", "block_num", "cdiv", "ceil", "check", "clamp", "concatenate", "cos", "cpp", "cumsum", "diff", "dot", "e8m0", "eager", "erf", "exp", "exp2", "f16", "f32", "f64", "f8e4m3", "f8e5m2", "flip", "float4_e1m2x2", "float4_e2m1x2", "floor", "full", "full_like", "gelu", "graph", "hifloat8", "i1", "i16", "i32", "i4x2", "i64", "i8", "isa", "judge", "kernel", "launch", "leaky_relu", "load", "log", "log2", "maximum", "minimum", "observe", "on", "operator", "pair", "parse", "parse_file", "print_module", "reciprocal", "relu", "reshape", "rsqrt", "sanitize", "scalar", "section_cube", "section_vector", "select", "set_validshape", "side_by_side", "sigmoid", "silu", "sin", "softmax", "sort", "sqrt", "static_range", "store", "subblock_idx", "subblock_num", "take", "tanh", "tile", "tile_type", "topk", "torch_op", "tri", "tune", "u16", "u32", "u64", "u8", "vecscope", "where", "zeros", "zeros_like"]

__version__: str
