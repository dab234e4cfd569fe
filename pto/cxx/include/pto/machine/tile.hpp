// Tiles: a shape, an element type and a layout in one local buffer, with a valid region.
#pragma once
#include <pto/machine/tensor.hpp>

namespace pto {
namespace machine {
// A tile without an address has a name, which the machine gives a place: names count down in this.
constexpr int64_t NAME = int64_t(1) << 40;
inline int64_t newName() { if (!now) makeRoom(512); return -++now->tiles * NAME; }

// The inner box: 512 bytes of 32-byte rows, 16 x 16 in accumulators, 16 x 2 scales.
template <class T> constexpr int boxWidth(int fractal)
{
    return fractal == TileConfig::fractalCSize ? 16 : fractal == TileConfig::fractalMxSize ? 2
        : TileConfig::alignedSize / int(sizeof(T)) * (IsTwinType<T>() ? 2 : 1);
}
// `path`: of an instruction that looks, -1 where it is none.
inline void look(int64_t type, int64_t place, int64_t offset, bool address, int64_t path = -1)
{
    const int64_t question[] = {type, place, offset, address, path};
    std::memcpy(now->question, question, sizeof(question));
    stop(LOOK);
}
// Where a tile lies: an address in its buffer, or a name until the machine gives it one. On cpu the bytes of a
// tile are the program's own: it may take a pointer to them, good until its end, or set one.
template <class T> struct Place {
    int64_t number = newName();
    mutable T* pointer = nullptr;
    Place& operator=(int64_t n) { number = n; pointer = nullptr; return *this; }
#if PTO_MACHINE_PROFILE == 1
    operator int64_t() const { return pointer ? int64_t(pointer) : number; }
    T*& point(int64_t type) const
    {
        if (!pointer) look(type, number, 0, true), now->eager = 1, pointer = reinterpret_cast<T*>(now->answer);
        return pointer;
    }
#else
    operator int64_t() const { return number; }
    T*& point(int64_t) const { return pointer = reinterpret_cast<T*>(number); }
#endif
};
template <class T> T readTile(int64_t type, int64_t place, int64_t offset, int64_t path = -1)
{
    look(type, place, offset, false, path);
    T found;
    std::memcpy(&found, &now->answer, sizeof(T));
    return found;
}
} // namespace machine

template <class T> size_t GetTileElementOffset(int row, int col);
template <class T, class V> void SetProperDataPart(T* p, size_t at, V value);
template <class T> T GetProperDataPart(T* p, size_t at);
template <TileType Loc_, class Element, int Rows_, int Cols_, BLayout B = BLayout::RowMajor, int RowValid = Rows_,
    int ColValid = Cols_, SLayout S = SLayout::NoneBox, int Fractal = TileConfig::fractalABSize,
    PadValue Pad = PadValue::Null, CompactMode Compact_ = CompactMode::Null>
struct Tile : machine::TileTag {
    using DType = Element;
    using TileDType = DType*;
    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_, Cols = Cols_, ValidRow = RowValid, ValidCol = ColValid, Numel = Rows_ * Cols_;
    static constexpr int SFractalSize = Fractal;
    static constexpr BLayout BFractal = B;
    static constexpr SLayout SFractal = S;
    static constexpr PadValue PadVal = Pad;
    static constexpr CompactMode Compact = Compact_;
    static constexpr bool isRowMajor = B == BLayout::RowMajor, isBoxedLayout = S != SLayout::NoneBox;
    static constexpr bool isInnerRowMajor = S == SLayout::RowMajor, isInnerColMajor = S == SLayout::ColMajor;
    static constexpr int RowStride = isRowMajor ? Cols : 1, ColStride = isRowMajor ? 1 : Rows;
    static constexpr int InnerRows = !isBoxedLayout ? 1 : isInnerRowMajor ? 16 : machine::boxWidth<DType>(Fractal);
    static constexpr int InnerCols = !isBoxedLayout ? 1 : isInnerRowMajor ? machine::boxWidth<DType>(Fractal) : 16;
    static constexpr int InnerNumel = InnerRows * InnerCols;
    unsigned RowMaskInternal = RowValid, ColMaskInternal = ColValid;
    machine::Place<DType> place;

    Tile() = default;
    template <class R, class C> Tile(R rows, C cols)
    {
        if (RowValid == DYNAMIC) RowMaskInternal = unsigned(rows);
        if (ColValid == DYNAMIC) ColMaskInternal = unsigned(cols);
    }
    template <class N, class = std::enable_if_t<std::is_convertible_v<N, unsigned>>> explicit Tile(N n)
    {
        if (RowValid == DYNAMIC) RowMaskInternal = unsigned(n);
        else if (ColValid == DYNAMIC) ColMaskInternal = unsigned(n);
    }
    template <int V = RowValid> static constexpr std::enable_if_t<V != DYNAMIC, unsigned> GetValidRow() { return V; }
    template <int V = RowValid> std::enable_if_t<V == DYNAMIC, unsigned> GetValidRow() const { return RowMaskInternal; }
    template <int V = ColValid> static constexpr std::enable_if_t<V != DYNAMIC, unsigned> GetValidCol() { return V; }
    template <int V = ColValid> std::enable_if_t<V == DYNAMIC, unsigned> GetValidCol() const { return ColMaskInternal; }
    void SetValidRow(unsigned n) { RowMaskInternal = n; }
    void SetValidCol(unsigned n) { ColMaskInternal = n; }
    void SetValidShape(unsigned r, unsigned c) { RowMaskInternal = r; ColMaskInternal = c; }
    TileDType& data() const { return place.point(number()); }
    static constexpr int GetSizeInBytes() { return int(sizeof(DType)) * Numel; }
    bool GetKAligned() const { return kAligned_; }
    void SetKAligned(bool k) { kAligned_ = k; }
    void SetMadTF32Mode(RoundMode mode = RoundMode::CAST_ROUND) { machine::record("SETTF32MODE", PTO_HERE, 1, mode); }
    void ResetMadMode() { machine::record("SETTF32MODE", PTO_HERE, 0); }

    DType GetValue(int64_t offset) const { return machine::readTile<DType>(number(), place, offset, machine::pathNumber(PTO_HERE)); }
    void SetValue(int64_t offset, DType value) { machine::record("TSETVAL", PTO_HERE, *this, offset, value); }

#if PTO_MACHINE_PROFILE == 1  // by row and column, of two that share a byte the one that is meant
    DType GetElement(int row, int col) const { return GetProperDataPart(data(), GetTileElementOffset<Tile>(row, col)); }
    void SetElement(int row, int col, DType v) { SetProperDataPart(data(), GetTileElementOffset<Tile>(row, col), v); }
#endif
    static int64_t number()
    {
        static int64_t n = machine::typeNumber({machine::ElementOf<DType>::name, 0, int64_t(Loc), Rows, Cols, int64_t(B),
            int64_t(S), Fractal, int64_t(Pad), int64_t(Compact_), 0, {RowValid == DYNAMIC, ColValid == DYNAMIC}});
        return n;
    }

private:
    bool kAligned_ = false;
};

#define PTO_TILE(NAME, LOC, B, S, FRACTAL, ...) \
    template <class E, int R, int C, int VR = R, int VC = C> \
    using NAME = Tile<TileType::LOC, E, R, C, BLayout::B, VR, VC, SLayout::S, FRACTAL, ##__VA_ARGS__>; \
    template <class E, int R, int C, int VR = R, int VC = C> \
    using NAME##Compact = Tile<TileType::LOC, E, R, C, BLayout::B, VR, VC, SLayout::S, FRACTAL, PadValue::Null, CompactMode::Normal>;
#if PTO_MACHINE_PROFILE == 2
PTO_TILE(TileLeft, Left, RowMajor, RowMajor, 512)
#else
PTO_TILE(TileLeft, Left, ColMajor, RowMajor, 512)
#endif
PTO_TILE(TileRight, Right, RowMajor, ColMajor, 512)
PTO_TILE(TileAcc, Acc, ColMajor, RowMajor, 1024)
PTO_TILE(TileLeftScale, ScaleLeft, RowMajor, RowMajor, 32)
PTO_TILE(TileRightScale, ScaleRight, ColMajor, ColMajor, 32)
#undef PTO_TILE

// ---- convolution tiles: feature maps and filters, with the registers of img2col beside them
template <int64_t... N> struct ConvTileShape {
    static constexpr int totalDimCount = sizeof...(N), dynamicDimCount = (0 + ... + int(N == DYNAMIC));
    static constexpr int64_t staticShape[sizeof...(N)] = {N...}, elements = dynamicDimCount ? 0 : (1 * ... * N);
    int64_t shape[6] = {(N == DYNAMIC ? 1 : N)...};
    ConvTileShape() = default;
    template <class... I, class = std::enable_if_t<machine::numbers<I...>>> ConvTileShape(I... given)
    {
        const int64_t from[] = {int64_t(given)...};
        int next = 0;
        for (int i = 0; i < totalDimCount; ++i)
            if (staticShape[i] == DYNAMIC) shape[i] = int(sizeof...(I)) == totalDimCount ? from[i] : from[next++];
    }
};
template <TileType Loc_, class Element, int BufferSize, Layout Layout_, class Shape_>
struct ConvTile : machine::ConvTag {
    using DType = Element;
    using TileDType = DType*;
    using ShapeType = Shape_;
    static constexpr TileType Loc = Loc_;
    static constexpr Layout layout = Layout_;
    static constexpr int bufferSize = BufferSize, totalDimCount = Shape_::totalDimCount;
    static constexpr auto& staticShape = Shape_::staticShape;
    machine::Place<DType> place;
    int64_t shape[6] = {1, 1, 1, 1, 1, 1};
    ConvTile() { copy(Shape_()); }
    template <class... I, class = std::enable_if_t<machine::numbers<I...>>> explicit ConvTile(I... n) { copy(Shape_(n...)); }
    template <class... I> void SetDynamicShape(I... n) { copy(Shape_(n...)); }
    int64_t GetShape(int d) const { return d < 0 || d >= totalDimCount ? -1 : shape[d]; }
    TileDType& data() const { return place.point(number()); }
#define PTO_REGISTER(type, Name, first) \
    type Get##Name() const { return Name##_; } \
    void Set##Name(type n) { Name##_ = n; } \
    type Name##_ = first;
    PTO_REGISTER(uint16_t, FmapH, 0) PTO_REGISTER(uint16_t, FmapW, 0) PTO_REGISTER(uint16_t, FilterH, 1)
    PTO_REGISTER(uint16_t, FilterW, 1) PTO_REGISTER(uint8_t, DilationH, 1) PTO_REGISTER(uint8_t, DilationW, 1)
    PTO_REGISTER(uint8_t, StrideH, 1) PTO_REGISTER(uint8_t, StrideW, 1) PTO_REGISTER(DType, PadValue, {})
    PTO_REGISTER(uint16_t, ChannelSize, 0) PTO_REGISTER(uint16_t, RepeatStride, 0) PTO_REGISTER(uint8_t, RepeatTime, 1)
    PTO_REGISTER(uint8_t, RepeatMode, 0) PTO_REGISTER(uint16_t, DstStride, 0) PTO_REGISTER(uint16_t, DstMposition, 0)
    PTO_REGISTER(bool, Transpose, false)
#undef PTO_REGISTER
    uint8_t GetPadList(int i) const { return pads_[i]; }
    void SetPadList(int i, uint8_t n) { pads_[i] = n; }
    const uint8_t* GetPadListArray() const { return pads_; }
    void SetPadListArray(const uint8_t n[4]) { for (int i = 0; i < 4; ++i) pads_[i] = n[i]; }

    static int64_t number()
    {
        static int64_t n = machine::typeNumber({machine::ElementOf<DType>::name, 2, int64_t(Loc),
            Shape_::elements ? Shape_::elements : BufferSize, totalDimCount, 0, 0, 0, 0, 0, int64_t(Layout_)});
        return n;
    }
    void facts() const  // in the order that readers of records name them
    {
        for (auto n : shape) machine::put(n);
        for (auto n : pads_) machine::put(n);
        int64_t outside = 0;
        std::memcpy(&outside, &PadValue_, sizeof(DType));
        const int64_t more[] = {FmapH_, FmapW_, FilterH_, FilterW_, DilationH_, DilationW_, StrideH_, StrideW_,
            outside, ChannelSize_, RepeatStride_, RepeatTime_, RepeatMode_, DstStride_, DstMposition_,
            Transpose_};
        for (auto n : more) machine::put(n);
    }

private:
    uint8_t pads_[4] = {};
    void copy(const Shape_& s) { for (int i = 0; i < totalDimCount; ++i) shape[i] = s.shape[i]; }
};

template <class T> struct is_tile : std::is_base_of<machine::TileTag, T> {};
template <class T> constexpr bool is_tile_data_v = std::is_base_of_v<machine::TileTag, T>;
template <class T> constexpr bool is_conv_tile_v = std::is_base_of_v<machine::ConvTag, T>;
template <class T> struct is_conv_tile : std::is_base_of<machine::ConvTag, T> {};
template <class T> constexpr bool isBoxed() { if constexpr (is_tile_data_v<T>) return T::isBoxedLayout; else return false; }
template <class T> constexpr bool is_boxed_data_v = isBoxed<T>();
template <class T> constexpr bool is_boxed_tile = isBoxed<T>();
template <class T> struct is_Nz_layout { static constexpr bool value = !T::isRowMajor && T::isBoxedLayout && T::isInnerRowMajor; };
template <class T> struct is_Zn_layout { static constexpr bool value = T::isRowMajor && T::isBoxedLayout && T::isInnerColMajor; };
template <class T> struct is_Zz_layout { static constexpr bool value = T::isRowMajor && T::isBoxedLayout && T::isInnerRowMajor; };

template <class T> constexpr TileLayoutCustom GetTileLayoutCustom()
{
    if (!T::isBoxedLayout) return T::isRowMajor ? TileLayoutCustom::ND : TileLayoutCustom::DN;
    if (T::SFractalSize != 512) return TileLayoutCustom::NONE;
    if (!T::isRowMajor) return T::isInnerRowMajor ? TileLayoutCustom::NZ : TileLayoutCustom::NONE;
    return T::isInnerRowMajor ? TileLayoutCustom::ZZ : TileLayoutCustom::ZN;
}

// Where element (row, col) of a tile lies, in elements.
template <class T> size_t GetTileElementOffset(int row, int col)
{
    if (!T::isBoxedLayout) return size_t(row) * T::RowStride + size_t(col) * T::ColStride;
    const int r = row / T::InnerRows, c = col / T::InnerCols, y = row % T::InnerRows, x = col % T::InnerCols;
    const int box = T::isRowMajor ? T::Cols / T::InnerCols * r + c : T::Rows / T::InnerRows * c + r;
    return size_t(box) * T::InnerNumel + (T::isInnerRowMajor ? y * T::InnerCols + x : x * T::InnerRows + y);
}
template <class T> size_t GetTileOffset(int row, int col) { return GetTileElementOffset<T>(row, col); }

// ---- which bytes a tile stands for
template <class T, class Address> void TASSIGN(T& t, Address address)
{
    if constexpr (is_global_data_v<T>) t.data_ = (typename T::DType*)address;
#ifndef __PTO_AUTO__
    else t.place = (int64_t)address;
#endif
}
template <std::size_t Address, class T> void TASSIGN(T& t) { TASSIGN(t, Address); }
template <class D, class S, class... E> RecordEvent TRESHAPE(D& d, S& s, E&...) { d.place = int64_t(s.place); return {}; }
template <class D, class S, class... E> RecordEvent TSUBVIEW(D& d, S& s, int64_t row, int64_t col, E&...)
{
    d.place = s.place + int64_t(sizeof(typename S::DType)) * (row * S::RowStride + col * S::ColStride);
    return {};
}
template <class D, class S, class... E> RecordEvent TGET_SCALE_ADDR(D& d, S& s, E&...)
{
    d.place = PTO_MACHINE_PROFILE == 1 && D::Loc == S::Loc ? int64_t(s.place) : s.place >> 4;  // in one buffer: the same bytes
    return {};
}
} // namespace pto
