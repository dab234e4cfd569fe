// Instructions that C++ has and the table has not: made of others, as the headers of the chips make them.
#pragma once
#include <pto/machine/queue.hpp>

namespace pto {
namespace machine {
template <MaskPattern M> constexpr int maskStep = M == MaskPattern::P1111 ? 1 : M <= MaskPattern::P1010 ? 2 : 4;
template <MaskPattern M> constexpr int maskFirst = M == MaskPattern::P1111 ? 0 : M <= MaskPattern::P1010 ? int(M) - 1 : int(M) - 3;
template <int Cols, class T> auto line(const T& t, int row, unsigned cols)
{
    Tile<TileType::Vec, typename T::DType, 1, Cols, BLayout::RowMajor, 1, DYNAMIC> found(cols);
    found.place = t.place + int64_t(row) * T::RowStride * int64_t(sizeof(typename T::DType));
    return found;
}
}
// Rows of src that a pattern takes, one after the other.
template <class D, class S, MaskPattern M, GatherAxis Axis> RecordEvent TGATHER(D& dst, S& src)
{
    constexpr int least = D::Cols < S::Cols ? D::Cols : S::Cols;
    if constexpr (Axis == GatherAxis::GATHER_ROW) machine::record<M>("TGATHER", PTO_HERE, dst, src);
    else for (int i = 0; i < int(dst.GetValidRow()); ++i)
        machine::record("TMOV", PTO_HERE, machine::line<least>(dst, i, dst.GetValidCol()),
            machine::line<least>(src, i * machine::maskStep<M> + machine::maskFirst<M>, dst.GetValidCol()));
    return {};
}
// Rows, or columns, of src to the places that a pattern gives; zero elsewhere.
template <MaskPattern M, auto Axis = ScatterAxis::SCATTER_ROW, class D, class S> RecordEvent TSCATTER(D& dst, S& src)
{
    if constexpr (M == MaskPattern::P1111) { machine::record("TMOV", PTO_HERE, dst, src); return {}; }
    constexpr int step = machine::maskStep<M>, first = machine::maskFirst<M>;
    constexpr int least = D::Cols < S::Cols ? D::Cols : S::Cols;
    D whole(dst);
    if constexpr (D::ValidRow == DYNAMIC && D::ValidCol == DYNAMIC) whole.SetValidShape(D::Rows, D::Cols);
    machine::record("TEXPANDS", PTO_HERE, whole, int64_t(0));
    for (int i = 0; i < int(src.GetValidRow()); ++i) {
        if constexpr (Axis == ScatterAxis::SCATTER_COL)
            machine::record("TMOV", PTO_HERE, machine::line<least>(dst, i * step + first, src.GetValidCol()),
                machine::line<least>(src, i, src.GetValidCol()));
        else for (int j = 0; j < int(src.GetValidCol()); ++j)
            dst.SetValue(int64_t(i) * D::RowStride + j * step + first, src.GetValue(int64_t(i) * S::RowStride + j));
    }
    return {};
}

namespace machine {
// Lines of bytes between a local buffer and global memory, as a transfer of tiles of bytes.
extern int64_t bytesType(TileType, int64_t rows, int64_t pitch);
inline void transfer(bool load, void** frame, void* caller, TileType where, const void* local, const void* global,
    int64_t lines, int64_t bytes, int64_t localPitch, int64_t globalPitch)
{
    if (!now || now->end - now->at < 512) makeRoom(512);
    now->last = caller;
    int64_t* start = now->at;
    now->at += 2;
    put(int64_t(load ? "TLOAD" : "TSTORE"));
    put(pathNumber(frame, caller));
    put(2);
    auto tile = [&] { put(TILE); put(bytesType(where, lines, localPitch)); put(lines); put(bytes); };
    auto tensor = [&] { put(TENSOR); put(bytesType(TileType::Ctrl, 0, 0)); put(1); put(1); put(1); put(lines); put(bytes); };
    if (load) tile(), tensor(); else tensor(), tile();
    start[1] = now->at - start - 2;
    auto memory = [&] { put(int64_t(global)); put(1); put(1); put(1); put(globalPitch); put(1); };
    if (load) put(int64_t(local)), memory(); else memory(), put(int64_t(local));
    start[0] = now->at - start;
}
} // namespace machine
} // namespace pto

// ---- copies by pointer: bursts and gaps in blocks of 32 bytes; the align forms in bytes of global memory
#define PTO_COPY(NAME, LOAD, WHERE, DST, SRC, LOCAL, GLOBAL, UNIT, GAPS, LOCALGAP, GLOBALGAP, LUNIT, GUNIT) \
    template <class D, class S, class... M> \
    void NAME(D* DST, S* SRC, int64_t, int64_t bursts, int64_t length, GAPS, M...) \
    { \
        const int64_t bytes = length * UNIT, room = (bytes + 31) / 32 * 32; \
        pto::machine::transfer(LOAD, PTO_HERE, pto::TileType::WHERE, LOCAL, GLOBAL, bursts, bytes, \
            room + LOCALGAP * LUNIT, bytes + GLOBALGAP * GUNIT); \
    }
#define P(...) __VA_ARGS__
PTO_COPY(copy_gm_to_ubuf, true, Vec, d, s, d, s, 32, P(int64_t from, int64_t to), to, from, 32, 32)
PTO_COPY(copy_gm_to_cbuf, true, Mat, d, s, d, s, 32, P(int64_t from, int64_t to), to, from, 32, 32)
PTO_COPY(copy_ubuf_to_gm, false, Vec, d, s, s, d, 32, P(int64_t from, int64_t to), from, to, 32, 32)
PTO_COPY(copy_cbuf_to_gm, false, Mat, d, s, s, d, 32, P(int64_t from, int64_t to), from, to, 32, 32)
#define PTO_ALIGNED(BITS) \
    PTO_COPY(copy_gm_to_ubuf_align_b##BITS, true, Vec, d, s, d, s, 1, P(int64_t, int64_t, int64_t from, int64_t to), to, from, 32, 1) \
    PTO_COPY(copy_ubuf_to_gm_align_b##BITS, false, Vec, d, s, s, d, 1, P(int64_t, int64_t, int64_t from, int64_t to), from, to, 32, 1)
PTO_ALIGNED(8)
PTO_ALIGNED(16)
PTO_ALIGNED(32)
#undef PTO_ALIGNED
#undef P
#undef PTO_COPY
#define PTO_LOCAL_COPY(NAME) \
    template <class D, class S> void NAME(D* d, S* s, int64_t sid, int64_t bursts, int64_t length, int64_t from, int64_t to) \
    { \
        pto::machine::record(#NAME, PTO_HERE, (void*)d, (void*)s, sid, bursts, length, from, to); \
    }
PTO_LOCAL_COPY(copy_ubuf_to_ubuf)
PTO_LOCAL_COPY(copy_ubuf_to_cbuf)
PTO_LOCAL_COPY(copy_cbuf_to_ubuf)
#undef PTO_LOCAL_COPY
template <class T> T* __cce_get_tile_ptr(T* p) { return p; }
namespace pto {
template <MaskPattern M> constexpr int GetTimesByMask() { return machine::maskStep<M>; }
template <MaskPattern M, uint16_t Pitch> constexpr int GetStrideByMask(int i)
{
    return (i * machine::maskStep<M> + machine::maskFirst<M>) * Pitch;
}
constexpr int32_t CeilDivision(int32_t a, int32_t b) { return b == 0 ? 0 : (a + b - 1) / b; }
inline uint64_t GetScaleAddr(const void* p) { return uint64_t(p) >> 4; }
}
#define PTO_CEIL(a, b) (((a) + (b) - 1) / (b) * (b))
