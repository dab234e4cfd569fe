// The host's side: launches, device memory, and the little of the Ascend runtime that test hosts use.
#pragma once
#include <pto/machine/quant.hpp>
#include <typeinfo>

namespace pto::machine {
using Call = void (*)(const void*);
extern bool addKernel(const char* key, Call, int side);
extern void* allocate(size_t bytes);
extern void release(void*);
// Launches are done: those that wait for others go on while the host does.
inline void finish() { drain(); stop(WAIT); }
// `k<<<n, x, s>>>(a)` becomes `launch<number, side>(n, [=]() mutable { k(a); })`: each side of a core has a
// build of its own, and finds its own closure under the same key, which does not name the side; side 0 is that
// of the build. The key is the number and the mangled type of the closure, which names the function around it with
// its template arguments and, unlike __PRETTY_FUNCTION__ of clang, no path. Compilers count closures of one function
// in that name: a side may leave some out, so that count is cut off.
template <int N, class F> const char* keyOf()
{
    static const std::string key = [] {
        std::string text = std::to_string(N) + " " + typeid(F).name();
        for (size_t at = text.find("UlvE"); at != std::string::npos; at = text.find("UlvE", at + 4))
            while (at + 4 < text.size() && std::isdigit(text[at + 4])) text.erase(at + 4, 1);
        return text;
    }();
    return key.c_str();
}
template <int N, int Side, class F> struct Kernel {
    static const char* key() { return keyOf<N, F>(); }
    static void call(const void* f) { F copy = *static_cast<const F*>(f); copy(); }
    static const bool known;
};
template <int N, int Side, class F>
const bool Kernel<N, Side, F>::known = addKernel(Kernel<N, Side, F>::key(), &Kernel<N, Side, F>::call, Side);
template <int N, int Side = 0, class B, class F> void launch(B blocks, F f)
{
    using K = Kernel<N, Side, F>;
    if (!K::known || !now) makeRoom(512);
    now->question[0] = int64_t(blocks);
    now->question[1] = int64_t(new F(f));  // stays: blocks may begin when this has returned
    now->question[2] = int64_t(K::key());
    stop(LAUNCH);
}
// A kernel called from Python: one word for each parameter.
template <class P> P argument(const void* word)
{
    if constexpr (std::is_pointer_v<P>) return *static_cast<P const*>(word);
    else { std::remove_cv_t<P> value; std::memcpy(&value, word, sizeof(P) < 8 ? sizeof(P) : 8); return value; }
}
template <class... P, size_t... I> void enter(void (*f)(P...), const int64_t* words, std::index_sequence<I...>)
{
    f(argument<P>(words + I)...);
}
template <class... P> void enter(void (*f)(P...), const int64_t* words) { enter(f, words, std::index_sequence_for<P...>()); }
template <class P> constexpr const char* parameter()
{
    return ElementOf<std::remove_cv_t<std::remove_pointer_t<P>>>::name;
}
template <class... P> void signature(void (*)(P...), const char** out)
{
    ((*out++ = std::is_pointer_v<P> ? "*" : "", *out++ = parameter<P>()), ...);
    *out = nullptr;
}
} // namespace pto::machine

#if PTO_MACHINE_PROFILE == 1
using aclFloat16 = half;
inline float aclFloat16ToFloat(aclFloat16 x) { return float(x); }
inline aclFloat16 aclFloatToFloat16(float x) { return aclFloat16(x); }
#else  // its bits, as the runtime has it
using aclFloat16 = uint16_t;
inline float aclFloat16ToFloat(aclFloat16 x) { return float(__builtin_bit_cast(half, x)); }
inline aclFloat16 aclFloatToFloat16(float x) { return __builtin_bit_cast(uint16_t, half(x)); }
#endif
using aclError = int;
using aclrtStream = void*;
using aclrtContext = void*;
using aclrtEvent = void*;
using rtStream_t = void*;
using rtError_t = int;
enum { ACL_SUCCESS = 0, ACL_ERROR_NONE = 0, RT_ERROR_NONE = 0 };
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemcpyKind { ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE };
inline aclError aclInit(const char*) { return 0; }
inline aclError aclFinalize() { return 0; }
inline aclError aclrtSetDevice(int) { return 0; }
inline aclError aclrtResetDevice(int) { return 0; }
inline aclError aclrtCreateStream(aclrtStream* s) { *s = nullptr; return 0; }
inline aclError aclrtDestroyStream(aclrtStream) { return 0; }
inline aclError aclrtSynchronizeStream(aclrtStream) { pto::machine::finish(); return 0; }
inline aclError aclrtSynchronizeDevice() { pto::machine::finish(); return 0; }
template <class P> aclError aclrtMalloc(P** p, size_t n, int = 0) { *p = (P*)pto::machine::allocate(n); return 0; }
inline aclError aclrtFree(void* p) { pto::machine::finish(); pto::machine::release(p); return 0; }
template <class P> aclError aclrtMallocHost(P** p, size_t n) { *p = (P*)std::calloc(1, n + 64); return 0; }
inline aclError aclrtFreeHost(void* p) { std::free(p); return 0; }
inline aclError aclrtMemcpy(void* d, size_t, const void* s, size_t n, int) { pto::machine::finish(); std::memcpy(d, s, n); return 0; }
inline aclError aclrtMemcpyAsync(void* d, size_t m, const void* s, size_t n, int k, aclrtStream) { return aclrtMemcpy(d, m, s, n, k); }
inline aclError aclrtMemset(void* d, size_t, int v, size_t n) { pto::machine::finish(); std::memset(d, v, n); return 0; }
inline const char* aclGetRecentErrMsg() { return ""; }
inline int rtGetC2cCtrlAddr(uint64_t* p, uint32_t* n) { *p = 0; *n = 0; return 0; }
inline int rtGetAiCoreCount(uint32_t* n) { *n = 24; return 0; }
