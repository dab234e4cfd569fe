// Vector registers, masks and alignment states of a5. An object names a slot of its agent's register file, which
// readers of records keep (`vector_calls.py`). Names and intrinsics are generated: `register_names.hpp`.
#pragma once
#include <pto/machine/compose.hpp>
#if PTO_MACHINE_PROFILE == 5
#include <pto/machine/register_words.hpp>

constexpr int CCE_VL = 256;
namespace pto::machine {
// Slots of the running agent: a free one, one more user of a slot, one less; how many use it.
extern int64_t newSlot();
extern void shareSlot(int64_t);
extern void dropSlot(int64_t);
extern bool isShared(int64_t);

// Copies share a slot until one of them is written, so that passing a register by value takes no instruction.
struct Slotted {
    int64_t slot = -1;  // none until it is written
    Slotted() = default;
    Slotted(const Slotted& o) : slot(o.slot) { shareSlot(slot); }
    Slotted& operator=(const Slotted& o)
    {
        const int64_t before = slot;
        shareSlot(slot = o.slot);
        dropSlot(before);
        return *this;
    }
    ~Slotted() { dropSlot(slot); }
};
template <class T> struct Register : Slotted {
    using Element = T;
    char bytes[CCE_VL - sizeof(int64_t)];  // kernels take the size of a register for its bytes
    Register() {}
    template <class U> explicit Register(const Register<U>& o) : Slotted(o) {}
};
struct Mask : Slotted { char bytes[CCE_VL / 8 - sizeof(int64_t)]; Mask() {} };
struct Align : Slotted {};
template <class T> constexpr bool isRegister = false;
template <class T> constexpr bool isRegister<Register<T>> = true;
} // namespace pto::machine

#define PTO_VECTORS(X) \
    X(u8, uint8_t) X(s8, int8_t) X(u16, uint16_t) X(s16, int16_t) X(u32, uint32_t) X(s32, int32_t) X(u64, uint64_t) \
    X(s64, int64_t) X(f16, half) X(bf16, bfloat16_t) X(f32, float) X(f8e4m3, float8_e4m3_t) X(f8e5m2, float8_e5m2_t) \
    X(f8e8m0, float8_e8m0_t) X(hif8, hifloat8_t) X(f4e2m1x2, float4_e2m1x2_t) X(f4e1m2x2, float4_e1m2x2_t)
#define X(name, type) using vector_##name = pto::machine::Register<type>;
PTO_VECTORS(X)
#undef X
#undef PTO_VECTORS
using vector_bool = pto::machine::Mask;
using vector_align = pto::machine::Align;

// Distributions of stores, by the numbers of the library's own list (npu/a5/utils.hpp).
enum class DistVST { DIST_NORM_B8, DIST_NORM_B16, DIST_NORM_B32, DIST_ONEPT_B8, DIST_ONEPT_B16, DIST_ONEPT_B32, DIST_PK_B16, DIST_PK_B32,
    DIST_INTLV_B8, DIST_INTLV_B16, DIST_PK_B64, DIST_INTLV_B32, DIST_PK4_B32, DIST_MRG4CHN_B8, DIST_MRG2CHN_B8, DIST_MRG2CHN_B16,
    DIST_NORM, DIST_ONEPT };
constexpr int Bin_N0 = 0, Bin_N1 = 1;  // halves of the byte values of a histogram

namespace pto {
using ::DistVST;
using MaskReg = vector_bool;
using UnalignReg = vector_align;
template <class Element> struct TypeGet { using T = machine::Register<Element>; };
template <class E> struct TypeGet<machine::Register<E>> { using T = machine::Register<E>; };
template <class Element> struct RegTensor {
    using RegType = typename TypeGet<Element>::T;
    RegType reg;
    operator RegType&() { return reg; }
    operator const RegType&() const { return reg; }
};
template <class T, DistVST dist> constexpr DistVST GetDistVst()
{
    constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : 2;
    if constexpr (dist == DistVST::DIST_NORM) return DistVST(width);
    else if constexpr (dist == DistVST::DIST_ONEPT) return DistVST(3 + width);
    else return dist;
}
namespace machine {
template <class T> constexpr bool isRegister<RegTensor<T>> = true;
template <class T> constexpr bool isMask = std::is_same_v<T, Mask>;
template <class T> constexpr bool isSlotted = isRegister<T> || isMask<T> || std::is_same_v<T, Align>;
template <class T> constexpr bool isWord = false;
template <class E, E V> constexpr bool isWord<std::integral_constant<E, V>> = std::is_enum_v<E>;
template <class A> A& plain(A& a) { return a; }
template <class T> auto& plain(RegTensor<T>& a) { return a.reg; }
template <class T> auto& plain(const RegTensor<T>& a) { return a.reg; }

template <class A> void registerSite(const A& a)
{
    if constexpr (isRegister<A>) { put(REGISTER); put(int64_t(ElementOf<typename A::Element>::name)); }
    else if constexpr (isMask<A>) { put(MASK); put(0); }
    else if constexpr (isSlotted<A>) { put(ALIGN); put(0); }
    else if constexpr (isWord<A>) { put(ENUM); put(enumOf<typename A::value_type>()); put(int64_t(A::value)); }
    else site(a);
}
template <class A> int64_t slotOf(const A& a)
{
    if constexpr (isSlotted<A>) return a.slot; else return -1;
}
// A slotted operand gives two values: the slot it is read from, and the one it is written to.
template <class A> void registerValues(A& a, int64_t before, bool isWritten)
{
    using Plain = std::remove_const_t<A>;
    if constexpr (isSlotted<Plain>) {
        put(before);
        if constexpr (!std::is_const_v<A>) {
            if (isWritten && (a.slot < 0 || isShared(a.slot))) dropSlot(std::exchange(a.slot, newSlot()));
        }
        put(a.slot);
    }
    else if constexpr (!isWord<Plain>) values(a);
}
// One vector instruction; bit n of `Written` says that operand n is written if it is a register.
template <unsigned Written, class... A>
__attribute__((noinline)) void registers(const char* op, void** frame, void* caller, A&... a)
{
    if (!now || now->end - now->at < 512) makeRoom(512);
    now->last = caller;
    int64_t* start = now->at;
    now->at += 2;
    put(int64_t(op));
    put(pathNumber(frame, caller));
    put(int64_t(sizeof...(A)));
    (registerSite(plain(a)), ...);
    start[1] = now->at - start - 2;
    const int64_t before[] = {slotOf(plain(a))..., 0};  // an operand that is written may be read as another one
    unsigned n = 0;
    ((registerValues(plain(a), before[n], Written >> n & 1), ++n), ...);
    start[0] = now->at - start;
    if (now->before) *now->beforeLast++ = now->amount, now->amount = 0;
}
// What `POST_UPDATE` does to the operands of C++: a pointer moves on by the number among the operands, which counts
// elements, bytes, or in its low half blocks of 32 bytes.
enum class Step { ELEMENTS, BYTES, BLOCKS };
template <class A> constexpr bool isPostUpdate = false;
template <> inline constexpr bool isPostUpdate<std::integral_constant<Word, Word::POST_UPDATE>> = true;
template <Step S, class... A> void postUpdate(A&&... a)
{
    if constexpr (!(isPostUpdate<std::decay_t<A>> || ...)) return;
    int64_t number = 0;
    bool isKnown = false;
    auto count = [&](const auto& x) {
        if constexpr (std::is_integral_v<std::decay_t<decltype(x)>>) { if (!isKnown) number = int64_t(x), isKnown = true; }
    };
    (count(a), ...);
    auto move = [&](auto&& x) {
        using Pointer = std::remove_reference_t<decltype(x)>;
        if constexpr (std::is_pointer_v<Pointer> && !std::is_const_v<Pointer>) {
            if constexpr (S == Step::ELEMENTS) x += number;
            else x = Pointer(uintptr_t(x) + uintptr_t(S == Step::BYTES ? number : (number & 0xffff) * 32));
        }
    };
    (move(a), ...);
}
// The number that a tail mask leaves for the next one.
template <int Lanes, class N> void reduceTail(N& number)
{
    if constexpr (!std::is_const_v<N>) number = number > N(Lanes) ? number - N(Lanes) : N(0);
}
// A vector scope: what is written down between its two marks is one operation of the vector pipe.
struct VectorScope {
    __attribute__((noinline)) VectorScope() { registers<0>("vecscope", PTO_HERE); }
    __attribute__((noinline)) ~VectorScope() { registers<0>("end of vecscope", PTO_HERE); }
};
} // namespace machine
} // namespace pto
#define __VEC_SCOPE__ if (pto::machine::VectorScope pto_vector_scope; true)
#endif
