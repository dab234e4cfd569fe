// Writing down what a kernel executes: one record an instruction, in 64-bit words.
//
// A record is [length, length of its site, site..., values...]. The site is what the place and the
// types decide: operation, path of calls, operand types with their valid regions and shapes, attributes.
// The values are what differs from call to call: addresses, strides, scalars. The two are read in `records.py`.
#pragma once
#include <pto/machine/words.hpp>

namespace pto::machine {
// Element types, in the order that readers of records know them by.
#define PTO_ELEMENTS(X) \
    X(float, f32) X(half, f16) X(bfloat16_t, bf16) X(int8_t, i8) X(uint8_t, u8) X(int16_t, i16) X(uint16_t, u16) \
    X(int32_t, i32) X(uint32_t, u32) X(long, i64) X(unsigned long, u64) X(long long, i64) X(unsigned long long, u64) \
    X(bool, i8) X(char, i8) X(double, f64) X(float8_e4m3_t, f8e4m3) X(float8_e5m2_t, f8e5m2) X(float8_e8m0_t, e8m0) \
    X(hifloat8_t, hifloat8) X(float4_e2m1x2_t, float4_e2m1x2) X(float4_e1m2x2_t, float4_e1m2x2) X(int4b_t, i4x2) \
    X(void, none)
template <class T> struct ElementOf { static constexpr const char* name = "?"; };
#define X(type, text) template <> struct ElementOf<type> { static constexpr const char* name = #text; };
PTO_ELEMENTS(X)
#undef X

// One tile or tensor type as readers see it; `kind`: 0 tile, 1 tensor, 2 convolution tile, 3 queue.
struct TypeFacts {
    const char* element;
    int64_t kind, loc, rows, cols, blayout, slayout, fractal, pad, compact, layout;
    int64_t more[6];
};
enum Tag : int64_t { TILE = 1, TENSOR, INTEGER, FLOAT, ENUM, POINTER, QUEUE, CONV, LITERAL, NUMBERS, GROUP, REGISTER, MASK, ALIGN };
constexpr int64_t CONTROL = -1;  // in the place of a type: the question is about the control register
enum Status : int64_t { DONE, FLUSH, LOOK, LAUNCH, FAILED, PAUSE, WAIT, LOADS };

// One side of one block, or the host: it runs on a stack of its own, and stops where the machine is needed.
struct Agent {
    int64_t *words, *at, *end;
    int64_t block, blocks, sub, subs, side;  // 0: the whole core, 1: vector, 2: cube
    int64_t tiles;         // names given to tiles without an address
    int64_t tokens[16][16];  // the next event id between two pipes
    int64_t question[5], answer;
    int64_t eager;         // somebody holds a pointer into a local buffer: each instruction is executed at once
    int64_t atomic;        // what a scalar store does to global memory: atomic_op_t
    const void* last;      // where the last instruction was called
    void* fiber;
    int64_t lanes = 128;   // that the mask register lets through, from the first; -1: not a run of lanes
    int64_t scale = 0, scales = 0;  // of the fixpipe: the bits of a number, where a tile of them lies
    bool counting = false;  // the mask register holds a number of elements, whatever the repeats
    int64_t amount = 0;    // operations of C++ since the last instruction; 0 unless they are counted
    int64_t *before = nullptr, *beforeLast = nullptr;  // the same of each record
};
extern Agent* now;
extern int64_t typeNumber(const TypeFacts&);
extern int64_t enumNumber(const char* prettyName);
extern int64_t pathNumber(void** frame, void* caller);
extern void stop(Status);      // let the machine go on; returns when it has
extern void makeRoom(int64_t words);

inline bool isCube() { return now && now->side == 2; }
inline void put(int64_t word) { *now->at++ = word; }
template <class E> const char* enumText() { return __PRETTY_FUNCTION__; }
template <class E> int64_t enumOf() { static int64_t number = enumNumber(enumText<E>()); return number; }

struct TileTag {};
struct ConvTag {};
struct TensorTag {};
struct QueueTag {};
struct EventTag {};
struct GroupTag {};  // tensors of several ranks
template <class A> constexpr bool isEvent = std::is_base_of_v<EventTag, A>;
template <class A> constexpr bool isTile = std::is_base_of_v<TileTag, A>;

template <class A> void site(const A& a)
{
    if constexpr (isTile<A>) { put(TILE); put(A::number()); put(a.GetValidRow()); put(a.GetValidCol()); }
    else if constexpr (std::is_base_of_v<TensorTag, A>) { put(TENSOR); put(A::number()); for (auto n : a.shape_.shape) put(n); }
    else if constexpr (std::is_base_of_v<ConvTag, A>) { put(CONV); put(A::number()); a.facts(); }
    else if constexpr (std::is_base_of_v<QueueTag, A>) { put(QUEUE); put(A::number()); }
    else if constexpr (std::is_base_of_v<GroupTag, A>) {
        put(GROUP), put(a.nranks), put(a.rootIdx);
        for (int i = 0; i < a.nranks; ++i) site(a.tensors[i]);
    }
    else if constexpr (std::is_pointer_v<A>) {
        using To = std::remove_cv_t<std::remove_pointer_t<A>>;
        if constexpr (isTile<To>) { if (a) site(*a); else put(POINTER), put(0); }
        else { put(POINTER); put(int64_t(ElementOf<To>::name)); }
    }
    else if constexpr (std::is_same_v<A, std::nullptr_t>) { put(POINTER); put(0); }
    else if constexpr (std::is_enum_v<A>) { put(ENUM); put(enumOf<A>()); put(int64_t(a)); }
    else if constexpr (std::is_array_v<A>) { put(NUMBERS); put(std::extent_v<A>); for (auto n : a) put(int64_t(n)); }
    else if constexpr (std::is_same_v<A, MrgSortExecutedNumList>) { put(NUMBERS); put(0); }
    else if constexpr (std::is_integral_v<A>) { put(INTEGER); put(int64_t(ElementOf<A>::name)); }
    else if constexpr (std::is_convertible_v<A, double>) { put(FLOAT); put(int64_t(ElementOf<A>::name)); }
    else static_assert(sizeof(A) == 0, "pto-machine: an operand of this type is not known here");
}
template <auto V> void literal()
{
    if constexpr (std::is_enum_v<decltype(V)>) { put(ENUM); put(enumOf<decltype(V)>()); put(int64_t(V)); }
    else { put(LITERAL); put(int64_t(ElementOf<decltype(V)>::name)); put(int64_t(V)); }
}
template <class A> void values(const A& a)
{
    if constexpr (isTile<A> || std::is_base_of_v<ConvTag, A>) put(a.place);
    else if constexpr (std::is_base_of_v<TensorTag, A>) { put(int64_t(a.data_)); for (auto n : a.stride_.stride) put(n); }
    else if constexpr (std::is_base_of_v<QueueTag, A>) put(a.name);
    else if constexpr (std::is_base_of_v<GroupTag, A>) for (int i = 0; i < a.nranks; ++i) values(a.tensors[i]);
    else if constexpr (std::is_pointer_v<A>) {
        if constexpr (isTile<std::remove_cv_t<std::remove_pointer_t<A>>>) put(a ? int64_t(a->place) : 0);
        else put(int64_t(a));
    }
    else if constexpr (std::is_same_v<A, std::nullptr_t>) put(0);
    else if constexpr (std::is_same_v<A, MrgSortExecutedNumList>) put(int64_t(&a));
    else if constexpr (std::is_enum_v<A> || std::is_array_v<A>) {}
    else if constexpr (std::is_integral_v<A>) put(int64_t(a));
    else put(__builtin_bit_cast(int64_t, double(a)));
}

// Wait for events among the operands, then write the instruction down.
template <auto... V, class... A>
__attribute__((noinline)) void record(const char* op, void** frame, void* caller, const A&... a)
{
    auto wait = [](const auto& x) { if constexpr (isEvent<std::decay_t<decltype(x)>>) x.Wait(); };
    (wait(a), ...);
    if (!now || now->end - now->at < 512) makeRoom(512);
    now->last = caller;
    int64_t* start = now->at;
    now->at += 2;
    put(int64_t(op));
    put(pathNumber(frame, caller));
    put(int64_t((0 + ... + int(!isEvent<A>))));
    auto one = [](const auto& x) { if constexpr (!isEvent<std::remove_cv_t<std::remove_reference_t<decltype(x)>>>) site(x); };
    (one(a), ...);
    (literal<V>(), ...);
    start[1] = now->at - start - 2;
    auto two = [](const auto& x) { if constexpr (!isEvent<std::remove_cv_t<std::remove_reference_t<decltype(x)>>>) values(x); };
    (two(a), ...);
    start[0] = now->at - start;
    if (now->before) *now->beforeLast++ = now->amount, now->amount = 0;
    if (now->eager) stop(PAUSE);
}
// Where the calling function was called: the line a person wrote.
#define PTO_HERE ((void**)__builtin_frame_address(0)), __builtin_return_address(0)
// Call a function of a program in text form (`program_calls.py`).
template <class... A>
void program(const char* text, const char* file, const char* name, const A&... a)
{
    record("program", PTO_HERE, text, file, name, a...);
}

// On cpu instructions are executed at once: where a program can see that, it waits for the machine.
inline void pause()
{
#if PTO_MACHINE_PROFILE == 1
    if (now && now->at != now->words) stop(PAUSE);
#endif
}
// Everything written so far has been executed when this returns.
inline void drain() { if (now && now->at != now->words) stop(FLUSH); }
} // namespace pto::machine

namespace pto {
struct RecordEvent {};
namespace machine {
// A number that an instruction writes: whoever reads it waits for everything before.
struct Count {
    uint16_t number = 0;
    operator uint16_t() const { drain(); return number; }
    Count& operator=(uint16_t n) { drain(); number = n; return *this; }
};
}
struct MrgSortExecutedNumList { machine::Count mrgSortList0, mrgSortList1, mrgSortList2, mrgSortList3; };
}
