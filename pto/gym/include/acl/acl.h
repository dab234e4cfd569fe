// The device runtime of host programs: its calls go through a table of functions to `pto/gym/host.py`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>

#define __global__
#define __gm__
#define __aicore__

#define __fp16 _Float16
using half = _Float16;
struct bfloat16_t { uint16_t bits; };
struct hifloat8_t { uint8_t bits; };
struct float8_e4m3_t { uint8_t bits; };
struct float8_e5m2_t { uint8_t bits; };
struct float8_e8m0_t { uint8_t bits; };
struct float4_e1m2x2_t { uint8_t bits; };
struct float4_e2m1x2_t { uint8_t bits; };
using aclFloat16 = uint16_t;

namespace pto_host {
// An argument of a launch: `kind` is * for memory, i, u and f for numbers; other types are their bits, u.
struct Argument {
    int64_t kind, size;
    uint64_t bits;
};
struct Calls {
    void* (*allocate)(uint64_t bytes);
    int (*release)(const void* memory);
    int (*copy)(void* to, uint64_t room, const void* from, uint64_t bytes, int direction);
    int (*fill)(void* to, uint64_t room, int value, uint64_t bytes);
    int (*launch)(const char* kernel, int64_t blocks, const Argument*, int64_t count);
    void (*at)(const char* file, int line);
    void (*wrote)(const char* file);
};
inline Calls calls;
struct Stopped {};  // thrown through the host program after an error
struct Exit { int code; };
inline int checked(int status)
{
    if (status != 0) throw Stopped();
    return 0;
}
// The line of a call, kept for messages.
inline void at(const char* file, int line) { calls.at(file, line); }
template <class P> constexpr int64_t kindOf()
{
    if (std::is_pointer_v<P>) return '*';
    if (std::is_same_v<P, half> || std::is_floating_point_v<P>) return 'f';
    return std::is_signed_v<P> ? 'i' : 'u';
}
template <class P> Argument argument(const P& value)
{
    static_assert(sizeof(P) <= 8, "an argument of a kernel has at most eight bytes");
    Argument made{kindOf<P>(), sizeof(P), 0};
    std::memcpy(&made.bits, &value, sizeof(P));
    return made;
}
template <class F> struct Kernel;
// `k<<<n, x, s>>>(a)` is rewritten as `Kernel<decltype(k)>::launch("k", file, line, n, a)`: arguments are converted
// to the parameters of the declaration, and the kernel itself is never called.
template <class... P> struct Kernel<void(P...)> {
    static void launch(const char* name, const char* file, int line, int64_t blocks, P... given)
    {
        const Argument all[] = {argument(given)..., Argument{}};
        at(file, line);
        checked(calls.launch(name, blocks, all, sizeof...(P)));
    }
};
inline int run(int (*program)(), int, char**) { return program(); }
inline int run(int (*program)(int, char**), int count, char** words) { return program(count, words); }
inline int run(int (*program)(int, const char**), int count, char** words) { return program(count, const_cast<const char**>(words)); }
}

using aclError = int;
using aclrtStream = void*;
using aclrtContext = void*;
using aclrtEvent = void*;
enum { ACL_SUCCESS = 0, ACL_ERROR_NONE = 0 };
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemcpyKind { ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE };

// ---- calls that only manage the device, its contexts and its streams: they succeed
template <class... A> aclError aclInit(A...) { return 0; }
inline aclError aclFinalize() { return 0; }
template <class... A> aclError aclrtSetDevice(A...) { return 0; }
template <class... A> aclError aclrtResetDevice(A...) { return 0; }
inline aclError aclrtGetDevice(int* device) { *device = 0; return 0; }
inline aclError aclrtCreateStream(aclrtStream* stream) { *stream = stream; return 0; }
inline aclError aclrtDestroyStream(aclrtStream) { return 0; }
inline aclError aclrtCreateContext(aclrtContext* context, int) { *context = context; return 0; }
inline aclError aclrtDestroyContext(aclrtContext) { return 0; }
inline aclError aclrtSetCurrentContext(aclrtContext) { return 0; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return 0; }
inline aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int) { return 0; }
inline aclError aclrtSynchronizeDevice() { return 0; }
inline aclError aclrtSetOpWaitTimeout(uint32_t) { return 0; }
inline const char* aclGetRecentErrMsg() { return ""; }

// ---- memory: a call of the host is a macro, so that a message names its line
namespace pto_host {
template <class P> aclError deviceMemory(P** to, uint64_t bytes, int = 0)
{
    void* memory = calls.allocate(bytes);
    checked(memory == nullptr);
    *to = static_cast<P*>(memory);
    return 0;
}
template <class P> aclError hostMemory(P** to, size_t bytes)
{
    *to = static_cast<P*>(std::calloc(1, bytes + 64));
    return *to == nullptr;
}
inline aclError copy(void* to, size_t room, const void* from, size_t bytes, int direction, aclrtStream = nullptr)
{
    return checked(calls.copy(to, room, from, bytes, direction));
}
inline aclError fill(void* to, size_t room, int value, size_t bytes, aclrtStream = nullptr)
{
    return checked(calls.fill(to, room, value, bytes));
}
inline aclError release(const void* memory) { return memory == nullptr ? 0 : checked(calls.release(memory)); }
}
#define PTO_HOST_AT(CALL) (pto_host::at(__FILE__, __LINE__), CALL)
#define aclrtMalloc(...) PTO_HOST_AT(pto_host::deviceMemory(__VA_ARGS__))
#define aclrtMallocAlign32(...) PTO_HOST_AT(pto_host::deviceMemory(__VA_ARGS__))
#define aclrtMallocHost(...) PTO_HOST_AT(pto_host::hostMemory(__VA_ARGS__))
#define aclrtMemcpy(...) PTO_HOST_AT(pto_host::copy(__VA_ARGS__))
#define aclrtMemcpyAsync(...) PTO_HOST_AT(pto_host::copy(__VA_ARGS__))
#define aclrtMemset(...) PTO_HOST_AT(pto_host::fill(__VA_ARGS__))
#define aclrtMemsetAsync(...) PTO_HOST_AT(pto_host::fill(__VA_ARGS__))
#define aclrtFree(...) PTO_HOST_AT(pto_host::release(__VA_ARGS__))
inline aclError aclrtFreeHost(void* memory) { std::free(memory); return 0; }

// A host program is a library here: `exit` ends it, and not the process.
[[noreturn]] inline void pto_host_exit(int code) { throw pto_host::Exit{code}; }
namespace std { using ::pto_host_exit; }
#define exit pto_host_exit
