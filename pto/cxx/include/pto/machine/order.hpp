// Order: flags, events, barriers, signals between cores, queues between the sides of a core.
#pragma once
#include <pto/machine/tile.hpp>
#include <pto/machine/kinds.hpp>

inline void set_flag(pipe_t a, pipe_t b, int64_t id) { pto::machine::record("set_flag", PTO_HERE, a, b, id); }
inline void wait_flag(pipe_t a, pipe_t b, int64_t id) { pto::machine::record("wait_flag", PTO_HERE, a, b, id); }
inline void pipe_barrier(pipe_t p) { pto::machine::record("pipe_barrier", PTO_HERE, p); }
inline void get_buf(pipe_t p, int64_t id, int64_t mode) { pto::machine::record("get_buf", PTO_HERE, p, id, mode); }
inline void rls_buf(pipe_t p, int64_t id, int64_t mode) { pto::machine::record("rls_buf", PTO_HERE, p, id, mode); }
// The message of a cross-core signal: bits 4-5 its mode, bits 8-11 its id.
inline void ffts_cross_core_sync(pipe_t p, uint64_t message)
{
    pto::machine::record("ffts_cross_core_sync", PTO_HERE, p, int64_t(message >> 8 & 15), int64_t(message >> 4 & 3));
}
inline void wait_flag_dev(int64_t id) { pto::machine::record("wait_flag_dev", PTO_HERE, id); }
inline void wait_flag_dev(pipe_t, int64_t id) { pto::machine::record("wait_flag_dev", PTO_HERE, id); }
inline void set_intra_block(pipe_t p, int64_t id) { pto::machine::record("set_intra_block", PTO_HERE, p, id); }
inline void wait_intra_block(pipe_t p, int64_t id) { pto::machine::record("wait_intra_block", PTO_HERE, p, id); }
inline void set_ffts_base_addr(uint64_t) {}
// What a kernel says about itself.
namespace cce {
template <class... A> int printf(const char* format, A... a) { return std::fprintf(stderr, format, a...); }
} // namespace cce
[[noreturn]] inline void trap() { std::abort(); }
// Memory as others see it: what was asked for before is done.
template <class... A> void dcci(A...) { pto::machine::drain(); }
template <class... A> void dsb(A...) { pto::machine::drain(); }
template <class P> std::remove_cv_t<P> ld_dev(P* p, int64_t offset)
{
    pto::machine::stop(pto::machine::LOADS);
    return *reinterpret_cast<P*>(reinterpret_cast<char*>(const_cast<std::remove_cv_t<P>*>(p)) + offset);
}
template <class V, class P> void st_dev(V v, P* p, int64_t offset)
{
    pto::machine::drain();
    *reinterpret_cast<P*>(reinterpret_cast<char*>(p) + offset) = P(v);
}
// A scalar store that combines with what is there, seen by all at once; its type is the operand's.
inline void set_st_atomic_cfg(atomic_type_t, atomic_op_t op)
{
    if (pto::machine::now) pto::machine::now->atomic = op;
}
template <class V, class P> void st_atomic(V v, P* p)
{
    pto::machine::drain();
    const auto op = pto::machine::now ? pto::machine::now->atomic : int64_t(ATOMIC_SUM);
    *p = P(op == ATOMIC_SUM ? *p + v : (op == ATOMIC_MAX) == (*p < v) ? v : *p);
}
extern "C" int64_t pto_cores;  // how many blocks run at a time; 0: all
// In parentheses, since a source may define a macro of the name: the header then uses the macro, as the library does.
inline int64_t (get_block_idx)() { return pto::machine::now ? pto::machine::now->block : 0; }
inline int64_t (get_block_num)() { return pto::machine::now ? pto::machine::now->blocks : 1; }
inline int64_t (get_subblockid)() { return pto::machine::now ? pto::machine::now->sub : 0; }
inline int64_t (get_subblockdim)() { return pto::machine::now ? pto::machine::now->subs : 1; }
inline int64_t (get_coreid)() { return get_block_idx() * get_subblockdim() + get_subblockid(); }
inline int64_t get_sys_cnt() { static int64_t ticks = 0; return ticks += 50; }
// Names of the device language that kernels read, and may give to variables of their own.
namespace pto::machine { template <int64_t (*Ask)()> struct Number { operator int64_t() const { return Ask(); } }; }
inline constexpr pto::machine::Number<get_block_idx> block_idx;
inline constexpr pto::machine::Number<get_block_num> block_num;
// Registers of vector instructions that tile instructions set for themselves.
inline void set_mask_norm() { if (pto::machine::now) pto::machine::now->counting = false; }
inline void set_mask_count() { if (pto::machine::now) pto::machine::now->counting = true; }
inline void set_vector_mask(uint64_t high, uint64_t low)
{
    const bool run = high ? !(high & (high + 1)) && low == ~uint64_t(0) : !(low & (low + 1));
    if (!pto::machine::now) return;
    pto::machine::now->lanes = pto::machine::now->counting ? int64_t(low) : run ? __builtin_popcountll(high) + __builtin_popcountll(low) : -1;
}
template <class... A> void set_atomic_none(A...) {}
template <class... A> void set_padding(A...) {}
template <class... A> void set_nd_para(A...) {}  // of a store by pointers, which is not taken
template <class... A> void trap(A...) { std::abort(); }
template <class... A> void preload(A...) {}
inline int get_icache_prl_st() { return 0; }

template <auto... V, class... A> void PTO_PREFETCH(A&&...) {}  // into a cache that holds everything here

namespace pto {
constexpr int kCvMaxCores = 25;
// The slot that both sides of a core agree on: every block is a core of its own here, unless a chip is timed.
template <auto... V, class P> int TSYNC_CVID(int block, P) { return pto_cores ? block % pto_cores : block; }
constexpr pipe_t pipeOf(Op op) { return machine::opPipes[int(op)]; }
inline uint16_t getFFTSMsg(uint16_t mode, uint16_t id, uint16_t base = 1)
{
    return uint16_t((base & 15) + ((mode & 3) << 4) + ((id & 15) << 8));
}
enum CVSyncMode : uint16_t { C_ALL_CORE_SYNC, V_ALL_CORE_SYNC = 0, V_SUBCORES_SYNC, CV_CORE_SYNC };
inline uint16_t _getFFTSMsg(uint16_t mode, uint16_t id, uint16_t base = 1) { return getFFTSMsg(mode, id, base); }
enum CVCommFftsEvent : uint16_t { CV_COMM_CTRL = 12, CV_COMM_RSVD_13, CV_COMM_RSVD_14, CV_COMM_RSVD_15 };
template <pipe_t A, pipe_t B> void PtoSetWaitFlag(event_t set = EVENT_ID0, event_t wait = EVENT_ID0)
{
    machine::record("set_flag", PTO_HERE, A, B, int64_t(set));
    machine::record("wait_flag", PTO_HERE, A, B, int64_t(wait));
}

// An event between two kinds of operation: a flag between their pipes; within one pipe a barrier.
template <Op Src, Op Dst, bool AutoToken = true, event_t Id = EVENT_ID0> struct Event : machine::EventTag {
    static constexpr Op srcOp = Src, dstOp = Dst;
    static constexpr pipe_t srcPipe = pipeOf(Src), dstPipe = pipeOf(Dst);
    static constexpr bool isSamePipe = srcPipe == dstPipe;
#if PTO_MACHINE_PROFILE == 5
    static constexpr bool crosses = Src == Op::TMOV_A2V || Src == Op::TMOV_V2M || Src == Op::TEXTRACT_V2M;
    static constexpr bool fences = srcPipe == PIPE_MTE2 || dstPipe == PIPE_MTE3;
#else
    static constexpr bool crosses = (Src == Op::TMOV_A2V && dstPipe == PIPE_V) ||
        ((Src == Op::TMOV_V2M || Src == Op::TEXTRACT_V2M) && dstPipe == PIPE_MTE1);
    static constexpr bool fences = true;
#endif
    const event_t token = AutoToken ? next() : Id;

    Event() = default;
    Event(RecordEvent) { set(PTO_HERE); }
    Event& operator=(RecordEvent) { set(PTO_HERE); return *this; }
    Event& InitAddr(uint64_t) { return *this; }
    template <uint8_t Core = 0xff> Event& Init() { set<Core>(PTO_HERE); return *this; }
    template <uint8_t Core = 0xff> Event& Record() { set<Core>(PTO_HERE); return *this; }
    template <uint8_t Core = 0xff> const Event& Wait() const { wait<Core>(PTO_HERE); return *this; }

private:
    static event_t next()
    {
        if (!machine::now) machine::makeRoom(512);
        int64_t& count = machine::now->tokens[srcPipe][dstPipe];
        return event_t(count++ % EVENT_ID_MAX);
    }
    template <uint8_t Core = 0xff> void set(void** frame, void* caller) const
    {
#ifndef __PTO_AUTO__
        if constexpr (crosses) {
#if PTO_MACHINE_PROFILE == 5
            machine::record("set_intra_block", frame, caller, srcPipe, int64_t(Core));
            machine::record("set_intra_block", frame, caller, srcPipe, int64_t(Core) + 16);
#else
            machine::record("ffts_cross_core_sync", frame, caller, srcPipe, int64_t(Core), int64_t(2));
#endif
        } else if constexpr (!isSamePipe) machine::record("set_flag", frame, caller, srcPipe, dstPipe, int64_t(token));
#endif
    }
    template <uint8_t Core = 0xff> void wait(void** frame, void* caller) const
    {
#ifndef __PTO_AUTO__
        if constexpr (crosses) {
#if PTO_MACHINE_PROFILE == 5
            machine::record("wait_intra_block", frame, caller, srcPipe, int64_t(Core));
#else
            machine::record("wait_flag_dev", frame, caller, int64_t(Core));
#endif
        } else if constexpr (isSamePipe) { if constexpr (fences) machine::record("pipe_barrier", frame, caller, srcPipe); }
        else machine::record("wait_flag", frame, caller, srcPipe, dstPipe, int64_t(token));
#endif
    }
};
// Signals between the sides of a core: data is there (`flag_id`), its place is free again (the next one).
enum class SyncOpType : uint8_t { TSTORE_C2GM, TSTORE_V2GM, TMOV_C2UB, TINSERT_V2L1, TLOAD };
template <SyncOpType Producer, SyncOpType Consumer> struct TSync_Custom {
    static_assert(Consumer == SyncOpType::TLOAD);
    static constexpr bool is_c2v = Producer == SyncOpType::TSTORE_C2GM || Producer == SyncOpType::TMOV_C2UB;
    static constexpr bool is_v2c = !is_c2v, isLocal = Producer == SyncOpType::TMOV_C2UB || Producer == SyncOpType::TINSERT_V2L1;
    static constexpr pipe_t made = is_c2v ? PIPE_FIX : PIPE_MTE3;
    static constexpr pipe_t used = !isLocal ? PIPE_MTE2 : is_c2v ? PIPE_V : PIPE_MTE1;
    uint16_t flag_id;
    void record() const { signal(PTO_HERE, made, flag_id, is_c2v); }
    void wait() const { await(PTO_HERE, used, flag_id, is_v2c); }
    void allocate() const { await(PTO_HERE, made, flag_id + 1, is_c2v); }
#if PTO_MACHINE_PROFILE == 5
    void free() const { signal(PTO_HERE, is_c2v ? used : PIPE_MTE1, flag_id + 1, is_v2c); }

private:  // the cube has an id for each of its two vector units
    static void signal(void** frame, void* caller, pipe_t pipe, int64_t id, bool isCube)
    {
        machine::record("set_intra_block", frame, caller, pipe, id);
        if (isCube) machine::record("set_intra_block", frame, caller, pipe, id + 16);
    }
    static void await(void** frame, void* caller, pipe_t pipe, int64_t id, bool isCube)
    {
        machine::record("wait_intra_block", frame, caller, pipe, id);
        if (isCube) machine::record("wait_intra_block", frame, caller, pipe, id + 16);
    }
#else
    void free() const { signal(PTO_HERE, PIPE_MTE2, flag_id + 1, is_v2c); }

private:
    static void signal(void** frame, void* caller, pipe_t pipe, int64_t id, bool)
    {
        machine::record("ffts_cross_core_sync", frame, caller, pipe, id, int64_t(2));
    }
    static void await(void** frame, void* caller, pipe_t, int64_t id, bool)
    {
        machine::record("wait_flag_dev", frame, caller, id);
    }
#endif
};
template <class T> struct is_event : std::is_base_of<machine::EventTag, T> {};
template <class... T> constexpr bool all_events_v = (is_event<T>::value && ...);
template <class... E> void WaitAllEvents(E&... e) { (e.Wait(), ...); }
template <Op O> void TSYNC()
{
#ifndef __PTO_AUTO__
    machine::record("pipe_barrier", PTO_HERE, pipeOf(O));
#endif
}
template <class... E, class = std::enable_if_t<(sizeof...(E) > 0)>> void TSYNC(E&... e) { (e.Wait(), ...); }
} // namespace pto

#if PTO_MACHINE_PROFILE == 1
// The simulator's own door: whom the calling code plays, and buffers that are as large as the profile says.
namespace pto {
enum class NPUArch { A2A3, A5 };
struct NPUMemoryModel {
    static NPUMemoryModel& Instance() { static NPUMemoryModel only; return only; }
    void Initialize(NPUArch) {}
    void Clear() {}
    bool IsInitialized() const { return true; }
    template <TileType L> static char* base()
    {
        static Tile<L, char, 1, 32> first;
        first.place = 0;
        return first.data();
    }
    char* GetUBBase() { return base<TileType::Vec>(); }
    char* GetL1Base() { return base<TileType::Mat>(); }
    char* GetL0ABase() { return base<TileType::Left>(); }
    char* GetL0BBase() { return base<TileType::Right>(); }
    char* GetL0CBase() { return base<TileType::Acc>(); }
};
namespace machine {
struct Thread {  // a host's threads run one after the other, each to its end
    Thread() = default;
    template <class F, class... A> explicit Thread(F&& f, A&&... a) { std::invoke(std::forward<F>(f), std::forward<A>(a)...); }
    bool joinable() const { return true; }
    void join() {}
};
}
namespace cpu_sim {
// Bit 48 makes results finite; as CTRL it keeps what is not.
inline void set_task_cookie(uint64_t n) { machine::record("set_ctrl", PTO_HERE, int64_t(n ^ 1ull << 48)); }
struct ScopedExecutionContext {
    int64_t block, sub, subs;
    ScopedExecutionContext(int64_t b, int64_t s, int64_t n)
        : block(machine::now->block), sub(machine::now->sub), subs(machine::now->subs)
    {
        machine::now->block = b, machine::now->sub = s, machine::now->subs = n;
    }
    ~ScopedExecutionContext() { machine::now->block = block, machine::now->sub = sub, machine::now->subs = subs; }
};
inline void reset_execution_context() { machine::now->block = machine::now->sub = 0, machine::now->subs = 1; }
inline void set_execution_context(int64_t b, int64_t s, int64_t n) { machine::now->block = b, machine::now->sub = s, machine::now->subs = n; }
} // namespace cpu_sim
} // namespace pto
namespace std { using pto_machine_thread = pto::machine::Thread; }
#define thread pto_machine_thread
#define NPU_MEMORY_INIT(arch) ((void)0)
#define NPU_MEMORY_CLEAR() ((void)0)
#endif
