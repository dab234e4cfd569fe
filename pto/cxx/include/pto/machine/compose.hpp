// Instructions that C++ has and the table has not: made of others, as the headers of the chips make them.
#pragma once
#include <pto/machine/queue.hpp>
#include <iomanip>
#include <iostream>

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
#if PTO_MACHINE_PROFILE == 1  // the simulator copies a tile
template <class D, class S, class = std::enable_if_t<is_tile_data_v<D> && is_tile_data_v<S>>> RecordEvent TPREFETCH(D& d, S& s)
{
    machine::record("TMOV", PTO_HERE, d, s);
    return {};
}
#endif
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
extern int64_t numbersType(const char* element, TileType, int64_t rows, int64_t pitch);
struct Writing {  // one record whose operands are made here
    int64_t* start;
    Writing(const char* op, void** frame, void* caller, int64_t operands)
    {
        if (!now || now->end - now->at < 512) makeRoom(512);
        now->last = caller;
        start = now->at;
        now->at += 2;
        put(int64_t(op));
        put(pathNumber(frame, caller));
        put(operands);
    }
    void values() { start[1] = now->at - start - 2; }
    ~Writing() { start[0] = now->at - start; }
};
inline void transfer(bool load, void** frame, void* caller, TileType where, const void* local, const void* global,
    int64_t lines, int64_t bytes, int64_t localPitch, int64_t globalPitch)
{
    Writing w(load ? "TLOAD" : "TSTORE", frame, caller, 2);
    auto tile = [&] { put(TILE); put(numbersType("u8", where, lines, localPitch)); put(lines); put(bytes); };
    auto tensor = [&] { put(TENSOR); put(numbersType("u8", TileType::Ctrl, 0, 0)); put(1); put(1); put(1); put(lines); put(bytes); };
    if (load) tile(), tensor(); else tensor(), tile();
    w.values();
    auto memory = [&] { put(int64_t(global)); put(1); put(1); put(1); put(globalPitch); put(1); };
    if (load) put(int64_t(local)), memory(); else memory(), put(int64_t(local));
}
// The same number in a row of elements.
template <class T> void fill(void** frame, void* caller, TileType where, const void* local, int64_t count, T value)
{
    const int64_t room = (count * int64_t(sizeof(T)) + 31) / 32 * 32 / int64_t(sizeof(T));
    Writing w("TEXPANDS", frame, caller, 2);
    put(TILE), put(numbersType(ElementOf<T>::name, where, 1, room)), put(1), put(count);
    site(value);
    w.values();
    put(int64_t(local));
    machine::values(value);
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
#define PTO_BY_PITCH(NAME, LOAD, WHERE, DST, SRC, LOCAL, GLOBAL, REST, LPITCH, GPITCH) \
    template <class D, class S> void NAME(D* DST, S* SRC, int64_t, int64_t bursts, int64_t bytes, REST) \
    { \
        const int64_t room = (bytes + 31) / 32 * 32; \
        pto::machine::transfer(LOAD, PTO_HERE, pto::TileType::WHERE, LOCAL, GLOBAL, bursts, bytes, \
            bursts > 1 ? int64_t(LPITCH) : room, bursts > 1 ? int64_t(GPITCH) : bytes); \
    }
PTO_BY_PITCH(copy_gm_to_ubuf_align_v2, true, Vec, d, s, d, s, P(int64_t, int64_t, bool, int64_t, int64_t from, int64_t to), to, from)
PTO_BY_PITCH(copy_gm_to_cbuf_align_v2, true, Mat, d, s, d, s, P(int64_t, int64_t, bool, int64_t, int64_t from, int64_t to), to, from)
PTO_BY_PITCH(copy_ubuf_to_gm_align_v2, false, Vec, d, s, s, d, P(int64_t, int64_t to, int64_t from), from, to)
#undef PTO_BY_PITCH
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
// ---- one number in the lanes of repeats: as many elements as are counted, or as the mask lets through
template <class T, class N> void vector_dup(T* dst, N number, int64_t repeats, int64_t block, int64_t, int64_t gap, int64_t)
{
    const auto* agent = pto::machine::now;
    const int64_t most = 256 / int64_t(sizeof(T)), lanes = agent->lanes < most ? agent->lanes : most;
    if (lanes < 0 || block != 1) throw std::runtime_error("vector_dup: lanes that do not lie side by side");
    if (agent->counting) return pto::machine::fill(PTO_HERE, pto::TileType::Vec, dst, agent->lanes, T(number));
    for (int64_t n = 0; n < repeats; ++n)
        pto::machine::fill(PTO_HERE, pto::TileType::Vec, (char*)dst + n * gap * 32, lanes, T(number));
}
// ---- conversions with repeats of 128 lanes to packed int4, of which each is one row of a tile; the form without a
// suffix rounds to nearest even where values are lost (Ascend C, Cast: CAST_NONE)
namespace pto {
inline void SetContinuousMask(unsigned lanes) { machine::now->lanes = lanes; }
namespace machine {
inline void toInt4(void** frame, void* caller, RoundMode mode, void* dst, const half* src, int64_t repeats, int64_t dstGap, int64_t srcGap)
{
    if (now->lanes < 0) throw std::runtime_error("vconv_f162s4: the mask is not one run of lanes");
    for (int64_t n = 0; n < repeats; ++n) {
        Tile<TileType::Vec, half, 1, 128, BLayout::RowMajor, 1, DYNAMIC> from(now->lanes);
        Tile<TileType::Vec, int4b_t, 1, 128, BLayout::RowMajor, 1, DYNAMIC> to(now->lanes);
        from.place = int64_t(src) + n * srcGap * 32, to.place = int64_t(dst) + n * dstGap * 32;
        record("TCVT", frame, caller, to, from, mode, SaturationMode::ON);
    }
}
} // namespace machine
} // namespace pto
#define PTO_TO_INT4(SUFFIX, MODE) \
    inline void vconv_f162s4##SUFFIX(void* d, const half* s, int64_t repeats, int64_t dstBlock, int64_t srcBlock, int64_t dstGap, int64_t srcGap) \
    { \
        if (dstBlock != 1 || srcBlock != 1) throw std::runtime_error("vconv_f162s4: blocks that do not lie side by side"); \
        pto::machine::toInt4(PTO_HERE, pto::RoundMode::MODE, d, s, repeats, dstGap, srcGap); \
    }
PTO_TO_INT4(, CAST_RINT) PTO_TO_INT4(r, CAST_RINT) PTO_TO_INT4(a, CAST_ROUND)
PTO_TO_INT4(f, CAST_FLOOR) PTO_TO_INT4(c, CAST_CEIL) PTO_TO_INT4(z, CAST_TRUNC)
#undef PTO_TO_INT4
// Fill L1: bits 0 to 15 say how often, then 15 bits how many blocks, then the gap between in blocks.
template <class T> void create_cbuf_matrix(T* p, int64_t repeat, int64_t value)
{
    const int64_t times = repeat & 0xffff, blocks = repeat >> 16 & 0x7fff, gap = repeat >> 32 & 0x7fff;
    for (int64_t n = 0; n < times; ++n)
        pto::machine::fill(PTO_HERE, pto::TileType::Mat, (char*)p + n * (blocks + gap) * 32, blocks * 16, uint16_t(value));
}

// ---- intrinsics below tiles
namespace pto::machine {
[[noreturn]] inline void refuse(const char* name)
{
    throw std::runtime_error(std::string(name) + ": an intrinsic below tiles, which is not taken here; TMOV, TEXTRACT and TMATMUL are");
}
}
#define PTO_REFUSED(NAME) template <class... A> void NAME(A&&...) { pto::machine::refuse(#NAME); }
PTO_REFUSED(load_cbuf_to_ca_mx) PTO_REFUSED(load_cbuf_to_cb_mx) PTO_REFUSED(load_cbuf_to_ca) PTO_REFUSED(load_cbuf_to_cb)
PTO_REFUSED(mad_mx) PTO_REFUSED(mad)
#undef PTO_REFUSED
namespace pto {
template <MaskPattern M> constexpr int GetTimesByMask() { return machine::maskStep<M>; }
template <MaskPattern M, uint16_t Pitch> constexpr int GetStrideByMask(int i)
{
    return (i * machine::maskStep<M> + machine::maskFirst<M>) * Pitch;
}
// Rows of a plain tile as fractals of another, row by row: TMOV by pointers.
template <class T, class D, class S> void TMovToVecNd2Nz(T* to, T* from, uint32_t rows, uint32_t cols, uint32_t sourceRows, unsigned = 0)
{
    Tile<TileType::Vec, T, D::Rows, D::Cols, D::BFractal, DYNAMIC, DYNAMIC, D::SFractal, D::SFractalSize, PadValue::Null, D::Compact> dst(rows, cols);
    Tile<TileType::Vec, T, S::Rows, S::Cols, S::BFractal, DYNAMIC, DYNAMIC, S::SFractal, S::SFractalSize> src(sourceRows, cols);
    dst.place = int64_t(to), src.place = int64_t(from);
    machine::record("TMOV", PTO_HERE, dst, src);
}
constexpr uint32_t BLOCK_SIZE = 32;
constexpr int32_t CeilDivision(int32_t a, int32_t b) { return b == 0 ? 0 : (a + b - 1) / b; }
inline uint64_t GetScaleAddr(const void* p)
{
#if PTO_MACHINE_PROFILE == 1  // a pointer into the buffer of the payload
    for (char* base : {NPUMemoryModel::base<TileType::Left>(), NPUMemoryModel::base<TileType::Right>()})
        if (p >= base && p < base + (64 << 10)) return uint64_t((const char*)p - base) >> 4;
#endif
    return uint64_t(p) >> 4;
}
// An element of memory, where two share a byte the half that is meant.
template <class T, class V> void SetProperDataPart(T* p, size_t at, V value)
{
    if constexpr (!IsTwinType<T>()) p[at] = value;
    else p[at / 2] = T(at % 2 ? (p[at / 2] & 15) | uint8_t(value) << 4 : (p[at / 2] & 240) | (uint8_t(value) & 15));
}
template <class T> T GetProperDataPart(T* p, size_t at)
{
    if constexpr (!IsTwinType<T>()) return p[at];
    else return T(p[at / 2] >> (at % 2 ? 4 : 0) & 15);
}
}
namespace pto::machine {
// On cpu the text of TPRINT goes to std::cout, too: programs look at it there.
template <auto... Format, class T, class... More> void show(T& tile, More&...)
{
#if PTO_MACHINE_PROFILE == 1
    if constexpr (isTile<T>) {
        constexpr int format = (0 + ... + int(Format)), width = format == 2 ? 10 : 8;
        std::cout << "TPRINT " << tile.GetValidRow() << "x" << tile.GetValidCol() << "\n";
        for (unsigned r = 0; r < tile.GetValidRow(); ++r)
            for (unsigned c = 0; c < tile.GetValidCol(); ++c) {
                const auto value = tile.GetElement(int(r), int(c));
                std::cout << (c ? " " : "") << std::setw(width);
                if constexpr (std::is_integral_v<typename T::DType>) std::cout << +value;
                else if constexpr (std::is_convertible_v<typename T::DType, double>) std::cout << std::fixed << std::setprecision(format == 0 ? 4 : format == 1 ? 2 : 6) << double(value);
                if (c + 1 == tile.GetValidCol()) std::cout << "\n";
            }
    }
#endif
}
}
#define PTO_CEIL(a, b) (((a) + (b) - 1) / (b) * (b))
#define PTO_DIV_ROUNDUP(a, b) (((a) + (b) - 1) / (b))
