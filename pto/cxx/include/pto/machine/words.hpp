// Words of the device language: qualifiers, element types, names of pipes and modes.
// Kernels are compiled for the host here; what they execute is written down (record.hpp).
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#define PTO_MACHINE 1
#ifndef PTO_MACHINE_PROFILE  // 1 cpu, 2 a2a3, 5 a5
#define PTO_MACHINE_PROFILE 2
#endif
#include <pto/machine/target.hpp>

#define __global__
#define __aicore__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __in__
#define __out__
#define __tf__
#define __sync_noalias__
#define __inout_pipe__(...)
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __mix__(...)
#define __cube__
#define __vector__
#define __simd_vf__
#define __simd_callee__
#define AICORE
#define OP_NAME(...)
#define OP_TYPE(...)
#define PTO_INLINE inline
#define PTO_INST inline
#define PTO_INTERNAL inline
#define PTO_STATIC_ASSERT(...)
#define PTO_ASSERT(...) ((void)0)
#define PTO_CPU_ASSERT(...) ((void)0)
#define PTO_RESTRICT

using half = _Float16;
using float16_t = half;
#define __fp16 _Float16
using float32_t = float;

// A number kept as bits: kernels hand it on, hosts convert it.
struct bfloat16_t {
    uint16_t bits = 0;
    constexpr bfloat16_t() = default;
    template <class N, class = std::enable_if_t<std::is_arithmetic_v<N> || std::is_same_v<N, half>>>
    constexpr bfloat16_t(N n) : bits(round(__builtin_bit_cast(uint32_t, float(n)))) {}
    constexpr operator float() const { return __builtin_bit_cast(float, uint32_t(bits) << 16); }
    static constexpr uint16_t round(uint32_t u)
    {
        return (u & 0x7fffffff) > 0x7f800000 ? uint16_t(u >> 16 | 64) : uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
};
namespace pto::machine {
template <int Kind> struct Byte {
    uint8_t bits = 0;
    constexpr Byte() = default;
    constexpr Byte(int n) : bits(uint8_t(n)) {}
    constexpr operator uint8_t() const { return bits; }
    constexpr uint8_t RawData() const { return bits; }
    static constexpr Byte FromRaw(uint8_t n) { return Byte(n); }
};
}
// The compiler for a2a3 has none of the small floats: sources may define types of these names.
namespace pto::machine {
using float8_e4m3_t = Byte<0>;
using float8_e5m2_t = Byte<1>;
using float8_e8m0_t = Byte<2>;
using hifloat8_t = Byte<3>;
using float4_e2m1x2_t = Byte<4>;
using float4_e1m2x2_t = Byte<5>;
}
#if PTO_MACHINE_PROFILE != 2
using pto::machine::float8_e4m3_t, pto::machine::float8_e5m2_t, pto::machine::float8_e8m0_t;
using pto::machine::hifloat8_t, pto::machine::float4_e2m1x2_t, pto::machine::float4_e1m2x2_t;
#endif
namespace pto { using int4b_t = machine::Byte<6>; }
using pto::int4b_t;

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_MTE4, PIPE_MTE5, PIPE_V2, PIPE_FIX };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
#define EVENT_ID_MAX 8
enum cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum dcci_dst_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum atomic_type_t { ATOMIC_NONE, ATOMIC_F32, ATOMIC_F16, ATOMIC_S16, ATOMIC_S32, ATOMIC_S8, ATOMIC_BF16 };
enum atomic_op_t { ATOMIC_SUM, ATOMIC_MAX, ATOMIC_MIN };
// What the fixpipe makes of an accumulator, by the numbers of the device compiler.
enum QuantMode_t { NoQuant, F322F16, VREQ8, REQ8, VDEQF16, DEQF16, VSHIFTS322S16 = 12, SHIFTS322S16, F322BF16 = 16, VQF322B8_PRE = 23,
    QF322B8_PRE, QF322F16_PRE = 32, QF322BF16_PRE = 34, QS322BF16_PRE, VQS322BF16_PRE };
enum mem_dsb_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };

namespace pto {
constexpr int DYNAMIC = -1;
enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling, ScaleLeft, ScaleRight, Ctrl };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class Layout { ND, DN, NZ, SCALE, MX_A_ND, MX_A_DN, MX_A_ZZ, MX_B_ND, MX_B_DN, MX_B_NN, HIF4_A_ZZ, HIF4_B_NN,
    NC1HWC0, GNC1HWC0, NCHW, GNCHW, NHWC, NDC1HWC0, NCDHW, FRACTAL_Z, FRACTAL_Z_S16S8, FRACTAL_Z_3D, MAX };
enum class PadValue : uint64_t { Null, Zero, Max, Min, CustomBase = 0x100000000ULL };
enum class CompactMode { Null, Normal, RowPlusOne, RowAlignedPadding };
enum class TFillPadMode : uint8_t { Normal, InPlace, Expand };
enum class CmpMode : uint8_t { EQ, NE, LT, LE, GT, GE };
enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class SaturationMode : uint8_t { ON, OFF };
enum class AtomicType : uint8_t { AtomicNone, AtomicAdd, AtomicMax, AtomicMin };
enum class ReluPreMode : uint8_t { NoRelu, NormalRelu };
enum class LayoutMode_t : uint8_t { NZ2NZ, NZ2ND, NZ2DN };
enum ClipReluMode_t { NOCLIP_RELU, CLIP_RELU };
enum class AccToVecMode : uint8_t { SingleModeVec0, SingleModeVec1, DualModeSplitM, DualModeSplitN };
enum class STPhase : uint8_t { Unspecified, Partial = 2, Final };
enum class AccPhase : uint8_t { Unspecified, Unknown = 0, Partial = 2, Final };
enum class MaskPattern : uint8_t { P0101 = 1, P1010, P0001, P0010, P0100, P1000, P1111 };
enum class QuantType { MXFP8, MXFP4_E2M1, INT8_SYM, INT8_ASYM };
enum class QuantScaleAlg { OCP, NV };
enum class MxQuantAlg { OcpMxFp8E4M3, NvMxFp8E4M3, OcpMxFp4E2M1, NvMxFp4E2M1, Hif4 };
enum class VecStoreMode { ND, NZ };
enum class HistByte : uint8_t { BYTE_0, BYTE_1, BYTE_2, BYTE_3 };
enum class PowAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class DivAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class SqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RsqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RecipAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class ExpAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class LogAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class FmodAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class FmodSAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemSAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class GatherAxis : uint8_t { GATHER_ROW, GATHER_COL };
enum class ScatterAxis : uint8_t { SCATTER_ROW, SCATTER_COL };
enum class Coalesce : uint8_t { Row, Elem };
enum class GatherOOB : uint8_t { Undefined, Clamp, Wrap, Zero };
enum class ScatterAtomicOp : uint8_t { None, Add, Max, Min };
enum class ScatterOOB : uint8_t { Undefined, Skip, Clamp, Wrap };
enum class ScatterConflict : uint8_t { Last, Default };
enum class TInsertMode : uint8_t { SPLIT2 = 2, SPLIT4 };
enum class SetFmatrixMode { FMATRIX_A_AUTO, FMATRIX_B_AUTO, FMATRIX_A_MANUAL, FMATRIX_B_MANUAL };
enum class SyncCoreType : uint8_t { AIVOnly, AICOnly, Mix };
enum class SyncAllMode : uint8_t { Hard, Soft };
enum class PrintFormat : uint8_t { Width8_Precision4, Width8_Precision2, Width10_Precision6 };
enum class TCopyMode : uint8_t { SHALLOW_COPY, DEEP_COPY };
enum class TileLayoutCustom : uint8_t { ND, DN, NZ, ZN, ZZ, NONE };
enum VFImplKind : unsigned { VFIMPL_DEFAULT, VFIMPL_1D_NO_POST_UPDATE, VFIMPL_2D_NO_POST_UPDATE, VFIMPL_1D_POST_UPDATE,
    VFIMPL_2D_POST_UPDATE };
enum TileSplitAxis : uint8_t { TILE_NO_SPLIT, TILE_UP_DOWN, TILE_LEFT_RIGHT, TILE_UP_DOWN_ODD, TILE_LEFT_RIGHT_ODD };
enum Direction : uint8_t { UNDEFINED, DIR_C2V, DIR_V2C, DIR_BOTH, DIR_V2C_CTRL, DIR_C2V_GM, DIR_V2C_GM, DIR_BOTH_GM };
enum TSyncCVMode : uint8_t { CUBE_ALL_CORE_SYNC, VEC_ALL_CORE_SYNC = 0, VEC_SUBCORES_SYNC, CV_CORES_SYNC };

namespace TileConfig {
constexpr int alignedSize = 32, fixedRowSize = 16, fixedColSize = 16, fixedMxRowSize = 16, fixedMxColSize = 2;
constexpr int fractalABSize = 512, fractalCSize = 1024, fractalMxSize = 32;
}
namespace GlobalTensorDim { constexpr int DIM_0 = 0, DIM_1 = 1, DIM_2 = 2, DIM_3 = 3, DIM_4 = 4, TOTAL_DIM = 5; }

// ---- numbers of the machine that kernels name
constexpr int REPEAT_BYTE = 256, REPEAT_MAX = 255, REPEAT_STRIDE_MAX = 255, BLOCK_BYTE_SIZE = 32, BLOCK_LEN = 16;
constexpr int FIXP_BURST_UNIT_LEN = 64, CUBE_BLOCK_SIZE = 512, C0_SIZE_BYTE = 32, FRACTAL_NZ_ROW = 16;
constexpr int FRACTAL_ZZ_ROW = 16, ACC_C0_SIZE = 16, MX_COL_LEN = 2, MX_ROW_LEN = 16, MX_BLOCK_SIZE = 32;
constexpr int HIF4_COL_LEN = 4, HIF4_ROW_LEN = 16, HIF4_BLOCK_SIZE = 64;
constexpr uint32_t TMP_UB_SIZE = 8 * 1024, TMP_UB_OFFSET = 184 * 1024, SHIFT_BLOCK_BYTE = 5, SHIFT_BLOCK_LEN = 4;
constexpr uint32_t SHIFT_FRACTAL_BYTE = 9, B4_C0_SIZE = 64;
constexpr int B8_DATA_TYPE_OFFSET = 8, MAD_MODE_BIT = 46, MAD_ROUND_MODE_BIT = 47, PAD_SHIFT_LENGTH = 32;
constexpr int NUM_1 = 1, NUM_4 = 4, NUM_8 = 8, NUM_12 = 12, NUM_16 = 16, NUM_32 = 32, NUM_64 = 64, NUM_77 = 77;
constexpr int NUM_96 = 96, NUM_128 = 128, NUM_256 = 256, NUM_512 = 512;
constexpr uint16_t PTO_TIME_1 = 1, PTO_TIME_2 = 2, PTO_TIME_4 = 4, PTO_IDX_0 = 0, PTO_IDX_1 = 1, PTO_IDX_2 = 2, PTO_IDX_3 = 3;
constexpr uint64_t BLOCK_MAX_PER_REPEAT = 8, MASK_LEN = 64;
constexpr uint16_t SYNC_AIC_FLAG = 11, SYNC_AIV_FLAG = 12, SYNC_AIC_AIV_FLAG = 13, SYNC_AIV_ONLY_ALL = 14;
constexpr int32_t SYNCALL_SOFT_WORKSPACE_INT32 = 16;
using TRandomKey = uint32_t[2];
using TRandomCounter = uint32_t[4];
struct MrgSortExecutedNumList;  // record.hpp

constexpr bool isCustomPadValue(PadValue p) { return uint64_t(p) >= uint64_t(PadValue::CustomBase); }
constexpr uint32_t getCustomPadBits(PadValue p) { return uint32_t(uint64_t(p)); }
template <class N> constexpr PadValue PadValueCustom(N n)
{
    using Bits = std::conditional_t<sizeof(N) == 4, uint32_t, std::conditional_t<sizeof(N) == 2, uint16_t, uint8_t>>;
    return PadValue(uint64_t(PadValue::CustomBase) | __builtin_bit_cast(Bits, n));
}
constexpr PadValue PadValueCustom16(uint16_t bits) { return PadValueCustom(bits); }
template <auto N> constexpr PadValue PadCustom = PadValueCustom(N);

template <class T> constexpr int GetTypeSize() { return int(sizeof(T)); }
template <class T> constexpr bool IsTwinType()
{
    return std::is_same_v<T, machine::float4_e2m1x2_t> || std::is_same_v<T, machine::float4_e1m2x2_t> || std::is_same_v<T, int4b_t>;
}
} // namespace pto
using pto::IsTwinType;
