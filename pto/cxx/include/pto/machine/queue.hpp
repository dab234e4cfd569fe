// Queues between the cube and the vector side of a core.
//
// On a2a3 a queue is made of what kernels could write themselves: slots in global memory, and two
// signals a direction, one for full slots and one for free ones. Elsewhere the machine has queues.
#pragma once
#include <pto/machine/order.hpp>

namespace pto {
template <int SlotSize, int SlotNum, int LocalSlotNum> struct RingFIFO {
    void* GM_SLOT_BUFFER = nullptr;
    uint32_t C2V_CONSUMER_BUF = 0, V2C_CONSUMER_BUF = 0;
    static constexpr uint32_t SLOT_SIZE = SlotSize, SLOT_NUM = SlotNum, LOCAL_SLOT_NUM = LocalSlotNum;
};
// How an accumulator is pushed.
template <LayoutMode_t L = LayoutMode_t::NZ2ND, QuantMode_t Q = NoQuant, ReluPreMode R = ReluPreMode::NoRelu,
    STPhase P = STPhase::Unspecified, uint8_t Sub = 0, AtomicType A = AtomicType::AtomicNone,
    ClipReluMode_t C = NOCLIP_RELU, bool Split = false>
struct FixpipeParams {
    static constexpr LayoutMode_t LayoutMode = L;
    static constexpr QuantMode_t QuantPre = Q;
    static constexpr ReluPreMode ReluMode = R;
    static constexpr STPhase Phase = P;
    static constexpr uint8_t SubBlockId = Sub;
    static constexpr AtomicType AtomicT = A;
    static constexpr ClipReluMode_t ClipReluMode = C;
    static constexpr bool IsChannelSplit = Split;
};
template <class Out> void SET_QUANT_SCALAR(float scale)
{
    const int64_t bits = int64_t(__builtin_bit_cast(uint32_t, scale)), sign = int64_t(std::is_same_v<Out, int8_t>) << 46;
    machine::now->scale = sizeof(Out) == 1 ? bits | sign : bits;
}
template <class T> void SET_QUANT_VECTOR(T& scales) { machine::now->scales = scales.place; }
namespace machine {
template <QuantMode_t Q> constexpr bool byTile = Q == VREQ8 || Q == VDEQF16 || Q == VQF322B8_PRE;
template <QuantMode_t Q> constexpr bool byNumber = Q == REQ8 || Q == DEQF16 || Q == QF322B8_PRE || Q == QF322F16_PRE || Q == QF322BF16_PRE || Q == QS322BF16_PRE;
template <QuantMode_t Q, class From> using Quantised = std::conditional_t<
    Q == F322F16 || Q == QF322F16_PRE || Q == DEQF16 || Q == VDEQF16, half,
    std::conditional_t<Q == F322BF16 || Q == QF322BF16_PRE || Q == QS322BF16_PRE || Q == VQS322BF16_PRE, bfloat16_t,
    std::conditional_t<Q == QF322B8_PRE || Q == REQ8 || Q == VQF322B8_PRE || Q == VREQ8, int8_t, From>>>;
// What a kernel may set at one end of a queue.
struct End {
    int tileIndex = 0, subTileIndex = 0, entryOffset = 0;
    void setTileId(int tile, int sub) { tileIndex = tile; subTileIndex = sub; }
    void setEntryOffset(int offset) { entryOffset = offset; }
    int getTileId() const { return tileIndex; }
    int getSubTileId() const { return subTileIndex; }
};
}

#if PTO_MACHINE_PROFILE == 2
template <uint8_t FlagID, uint8_t Dir, uint32_t SlotSize, uint32_t SlotNum, uint32_t LocalSlotNum = 2,
    bool NoSplit = false, bool UnitFlag = false>
struct TPipe {
    static constexpr uint8_t DIR_TYPE = Dir & 7;
    static constexpr bool is_c2v = DIR_TYPE == DIR_C2V, is_v2c = DIR_TYPE == DIR_V2C, is_both = DIR_TYPE == DIR_BOTH;
    static constexpr uint32_t SyncPeriod = SlotNum <= 2 ? SlotNum : SlotNum / 2;
    using RingFiFo = RingFIFO<SlotSize, SlotNum, LocalSlotNum>;
    static bool shouldWaitFree(uint32_t n) { return n >= SlotNum && n % SyncPeriod == 0; }
    static bool shouldNotifyFree(uint32_t n) { return (n + 1) % SyncPeriod == 0; }
    // Free slots that were told of and that no push has waited for.
    static constexpr uint32_t countPendingFreeCredits(uint32_t pushed)
    {
        uint32_t waited = 0;
        for (uint32_t n = SlotNum; n < pushed; ++n) waited += n % SyncPeriod == 0;
        const uint32_t told = pushed / SyncPeriod;
        return told > waited ? told - waited : 0;
    }
    // Full slots from the cube are signal FlagID, free ones FlagID + 1; the way back, where there is one, + 2 and + 3.
    static int64_t full(bool fromCube) { return is_both && !fromCube ? FlagID + 2 : FlagID; }
    static int64_t free(bool toCube) { return is_both && !toCube ? FlagID + 3 : FlagID + 1; }
    static void tell(void** frame, void* caller, pipe_t pipe, int64_t id)
    {
        machine::record("ffts_cross_core_sync", frame, caller, pipe, id, int64_t(2));
    }

    struct Producer : machine::End {
        bool isAllocate = true, isRecord = true;
        void setAllocateStatus(bool on) { isAllocate = on; }
        void setRecordStatus(bool on) { isRecord = on; }
        bool getAllocateStatus() const { return isAllocate; }
        bool getRecordStatus() const { return isRecord; }
        void allocate() const { allocate(PTO_HERE); }
        void record() const { record(PTO_HERE); }
        void allocate(void** frame, void* caller) const
        {
            machine::record("wait_flag_dev", frame, caller, free(machine::isCube()));
        }
        void record(void** frame, void* caller) const
        {
            tell(frame, caller, machine::isCube() ? PIPE_FIX : PIPE_MTE3, full(machine::isCube()));
        }
    };
    struct Consumer : machine::End {
        bool isWait = true, isFree = true;
        void setWaitStatus(bool on) { isWait = on; }
        void setFreeStatus(bool on) { isFree = on; }
        bool getWaitStatus() const { return isWait; }
        bool getFreeStatus() const { return isFree; }
        void wait() const { wait(PTO_HERE); }
        void free() const { free(PTO_HERE); }
        void wait(void** frame, void* caller) const
        {
            machine::record("wait_flag_dev", frame, caller, full(!machine::isCube()));
        }
        void free(void** frame, void* caller) const { tell(frame, caller, PIPE_MTE2, TPipe::free(!machine::isCube())); }
    };
    RingFiFo fifo;
    Producer prod;
    Consumer cons;

    template <class G, class A, class B> TPipe(G gm, A toVector, B toCube)
        : fifo{(void*)gm, uint32_t(toVector), uint32_t(toCube)}
    {
        if (!is_both) return;  // the way back lies behind the way there
        (machine::isCube() ? static_cast<machine::End&>(cons) : prod).setEntryOffset(int(SlotNum * SlotSize));
    }
    ~TPipe() { for (uint32_t n = countPendingFreeCredits(prod.tileIndex); n; --n) prod.allocate(PTO_HERE); }
    char* slot(const machine::End& end) const
    {
        return (char*)fifo.GM_SLOT_BUFFER + uint32_t(end.tileIndex) % SlotNum * size_t(SlotSize) + end.entryOffset;
    }
};

namespace machine {
using SlotShape = Shape<1, 1, 1, DYNAMIC, DYNAMIC>;
using SlotStride = Stride<1, 1, 1, DYNAMIC, 1>;
template <class T> using Slot = GlobalTensor<T, SlotShape, SlotStride>;
// The part of a slot that a vector sub-block has, with rows x cols of its own.
template <class T> Slot<T> part(char* slot, int split, int64_t sub, int64_t rows, int64_t cols)
{
    const int64_t odd = split > TILE_LEFT_RIGHT ? sub : 0;
    const bool byCols = split == TILE_LEFT_RIGHT || split == TILE_LEFT_RIGHT_ODD;
    const int64_t pitch = split == TILE_LEFT_RIGHT_ODD ? 2 * cols + 2 * sub - 1 : byCols ? 2 * cols : cols;
    const int64_t skip = split == TILE_NO_SPLIT ? 0 : byCols ? sub * (cols + odd) : sub * (rows + odd) * cols;
    return Slot<T>((T*)(slot) + skip, SlotShape(rows, cols), SlotStride(pitch));
}
template <class P, class T> void push(void** frame, void* caller, P& pipe, T& tile, int split, int64_t sub)
{
    if (pipe.prod.isAllocate && P::shouldWaitFree(pipe.prod.tileIndex)) pipe.prod.allocate(frame, caller);
    const bool whole = isCube();
    auto to = part<typename T::DType>(pipe.slot(pipe.prod), whole ? 0 : split, whole ? 0 : sub, tile.GetValidRow(), tile.GetValidCol());
    record("TSTORE", frame, caller, to, tile);
    ++pipe.prod.tileIndex;
    if (pipe.prod.isRecord) pipe.prod.record(frame, caller);
}
// The same of an accumulator through the fixpipe; the cube has the whole slot.
template <class C, class P, class T> void pushFixed(void** frame, void* caller, P& pipe, T& tile)
{
    static_assert(C::LayoutMode == LayoutMode_t::NZ2ND && C::Phase == STPhase::Unspecified, "pto-machine: a push in this form is not taken");
    constexpr QuantMode_t how = C::QuantPre;
    if (pipe.prod.isAllocate && P::shouldWaitFree(pipe.prod.tileIndex)) pipe.prod.allocate(frame, caller);
    auto to = part<Quantised<how, typename T::DType>>(pipe.slot(pipe.prod), 0, 0, tile.GetValidRow(), tile.GetValidCol());
    if constexpr (byTile<how>) {
        Tile<TileType::Scaling, uint64_t, 1, T::Cols, BLayout::RowMajor, 1, DYNAMIC> scales(tile.GetValidCol());
        scales.place = now->scales;
        record<C::AtomicT, C::ReluMode>("TSTORE_FP", frame, caller, to, tile, scales);
    } else if constexpr (byNumber<how>) record<C::AtomicT, C::ReluMode>("TSTORE", frame, caller, to, tile, uint64_t(now->scale));
    else record<C::AtomicT, C::ReluMode>("TSTORE", frame, caller, to, tile);
    ++pipe.prod.tileIndex;
    if (pipe.prod.isRecord) pipe.prod.record(frame, caller);
}
template <class P, class T> void pop(void** frame, void* caller, P& pipe, T& tile, int split, int64_t sub)
{
    if (pipe.cons.isWait) pipe.cons.wait(frame, caller);
    const bool whole = isCube();
    auto from = part<typename T::DType>(pipe.slot(pipe.cons), whole ? 0 : split, whole ? 0 : sub, tile.GetValidRow(), tile.GetValidCol());
    const uint32_t base = whole ? pipe.fifo.V2C_CONSUMER_BUF : pipe.fifo.C2V_CONSUMER_BUF;
    tile.place = base + uint32_t(pipe.cons.tileIndex) % pipe.fifo.LOCAL_SLOT_NUM * int64_t(pipe.fifo.SLOT_SIZE);
    record("TLOAD", frame, caller, tile, from);
    if (pipe.cons.isFree && P::shouldNotifyFree(pipe.cons.tileIndex)) pipe.cons.free(frame, caller);
    ++pipe.cons.tileIndex;
}
template <class G> char* entry(char* slot, int split)
{
    const int64_t rows = G::staticShape[3], cols = G::staticShape[4], sub = get_subblockid();
    const int64_t skip = split == TILE_NO_SPLIT ? 0 : split == TILE_UP_DOWN ? sub * rows * cols : sub * cols;
    return slot + skip * int64_t(sizeof(typename G::DType));
}
} // namespace machine

template <class P, class T, TileSplitAxis Split, class... E> RecordEvent TPUSH(P& pipe, T& what, E&... e)
{
    if constexpr (is_global_data_v<T>) pipe.prod.record(PTO_HERE);
    else machine::push(PTO_HERE, pipe, what, Split, get_subblockid());
    return {};
}
template <class P, class T, class C> RecordEvent TPUSH(P& pipe, T& tile)
{
    machine::pushFixed<C>(PTO_HERE, pipe, tile);
    return {};
}
template <class P, class T, TileSplitAxis Split> RecordEvent TPUSH(P& pipe, T& tile, int32_t sub)
{
    machine::push(PTO_HERE, pipe, tile, Split, sub);
    return {};
}
template <class P, class T, TileSplitAxis Split, class... E> RecordEvent TPOP(P& pipe, T& what, E&... e)
{
    if constexpr (is_global_data_v<T>) {
        if (pipe.cons.isWait) pipe.cons.wait(PTO_HERE);
        what.data_ = (typename T::DType*)machine::entry<T>(pipe.slot(pipe.cons), Split);
        ++pipe.cons.tileIndex;
    } else machine::pop(PTO_HERE, pipe, what, Split, get_subblockid());
    return {};
}
template <class P, class T, TileSplitAxis Split> RecordEvent TPOP(P& pipe, T& tile, int32_t sub)
{
    machine::pop(PTO_HERE, pipe, tile, Split, sub);
    return {};
}
template <class P, class G, TileSplitAxis Split, class... E> RecordEvent TALLOC(P& pipe, G& entry, E&... e)
{
    if (pipe.prod.isAllocate && P::shouldWaitFree(pipe.prod.tileIndex)) pipe.prod.allocate(PTO_HERE);
    entry.data_ = (typename G::DType*)machine::entry<G>(pipe.slot(pipe.prod), Split);
    ++pipe.prod.tileIndex;
    return {};
}
template <class P, TileSplitAxis Split, class... E> RecordEvent TFREE(P&, E&...) { return {}; }
template <class P> RecordEvent TFREE(P&) { return {}; }
template <class P, class G, TileSplitAxis Split, class... E> RecordEvent TFREE(P& pipe, G&, E&... e)
{
    if (pipe.cons.isFree && P::shouldNotifyFree(uint32_t(pipe.cons.tileIndex - 1))) pipe.cons.free(PTO_HERE);
    return {};
}
#else
template <uint8_t FlagID, uint8_t Dir, uint32_t SlotSize, uint32_t SlotNum, uint32_t LocalSlotNum = 2,
    bool NoSplit = false, bool UnitFlag = false>
struct TPipe : machine::QueueTag {
    static constexpr uint8_t DIR_TYPE = Dir;
    using RingFiFo = RingFIFO<SlotSize, SlotNum, LocalSlotNum>;
    using Producer = machine::End;
    using Consumer = machine::End;
    RingFiFo fifo;
    int64_t name = machine::newName();
    template <class G, class A, class B> TPipe(G gm, A toVector, B toCube)
        : fifo{(void*)gm, uint32_t(toVector), uint32_t(toCube)}
    {
        machine::record("TPIPE", PTO_HERE, *this, (void*)gm, int64_t(toVector), int64_t(toCube));
    }
    static void reset_for_cpu_sim() {}
    static int64_t number()
    {
        static int64_t n = machine::typeNumber({"none", 3, Dir, SlotSize, SlotNum, LocalSlotNum, FlagID, NoSplit});
        return n;
    }
};
#endif
} // namespace pto
