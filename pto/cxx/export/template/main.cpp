// The host program of NAME: it runs the kernel on the data of gen_data.py, compares the results
// with those of the run that the folder was made from, and prints the time beside the prediction.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>
#include <acl/acl.h>
#include <runtime/rt.h>
#include <gtest/gtest.h>

#ifdef RANKS
// Ranks and their windows: the header of pto-isa's tests of communication, as a host includes it.
#define PTO_COMM_ST_SKIP_SDMA_WORKSPACE_MANAGER
#ifndef AICORE
#define AICORE
#define __gm__
#endif
#if defined(PTO_MACHINE) && !__has_include("../common.hpp")
#include <pto/machine/test_context.hpp>
#else
#include "../common.hpp"
int main(int argc, char** argv)
{
    CommMpiInit(&argc, &argv);
    ::testing::InitGoogleTest(&argc, argv);
    const int result = RUN_ALL_TESTS();
    CommMpiFinalize();
    return result;
}
#endif
void move_NAME(void* to, void* from, size_t bytes, void* stream);
#endif // RANKS
SIGNATURE;

// Reports a call of the runtime that fails, as on a board that aborts the kernel.
#define CHECKED(call) EXPECT_EQ((call), ACL_SUCCESS) << #call

namespace {
const std::string kFolder = "../SUITE.CASE/";
aclrtStream stream = nullptr;
#ifdef RANKS
void move(void* to, void* from, size_t bytes) { move_NAME(to, from, bytes, stream); }
#else // RANKS
void move(void*, void*, size_t) {} // memory of one device is in no window
#endif // RANKS

enum Kind { bits, f8e4m3, f8e5m2, f16, bf16, f32 };

size_t size_of(Kind kind) { return kind == f32 ? 4 : kind == f16 || kind == bf16 ? 2 : 1; }

// The value of an element. That of an 8-bit float is its number of steps from zero.
double number(const std::vector<char>& bytes, size_t n, Kind kind)
{
    uint32_t word = 0;
    std::memcpy(&word, &bytes[n * size_of(kind)], size_of(kind));
    if (kind == bits) return word;
    if (kind == f8e4m3 || kind == f8e5m2) {
        const uint32_t steps = word & 0x7f, finite = kind == f8e5m2 ? 0x7b : 0x7e;
        const bool infinite = kind == f8e5m2 && steps == 0x7c;
        const double size = steps <= finite ? steps : infinite ? INFINITY : NAN;
        return word & 0x80 ? -size : size;
    }
    const uint32_t special = (word & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
    if (kind == bf16) word <<= 16;
    if (kind == f16) word = (word & 0x8000) << 16 | (word & 0x7fff) << 13 | special;
    float value;
    std::memcpy(&value, &word, 4);
    return kind == f16 ? value * 0x1p112 : value;
}

// An array of this rank, or of another one; `window` is its address where other ranks reach it.
struct Array {
    std::string name;
    std::vector<char> host;
    void *own = nullptr, *device;

    Array(const std::string& label, size_t bytes, bool mine = true, void* window = nullptr)
        : name(label), host(mine ? bytes : 0), device(window)
    {
        if (!mine) return;
        std::ifstream file(kFolder + name + ".bin", std::ios::binary);
        file.read(host.data(), bytes);
        EXPECT_TRUE(file.gcount() == (std::streamsize)bytes) << name << ".bin: run gen_data.py";
        CHECKED(aclrtMalloc(&own, bytes + 8, ACL_MEM_MALLOC_HUGE_FIRST));
        CHECKED(aclrtMemcpy(own, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
        if (window) move(window, own, bytes);
        else device = own;
    }

    ~Array() { aclrtFree(own); }

    // Copies the result back and counts the elements that differ by more than is allowed: a
    // relative error, or steps of 8-bit floats, and an absolute error.
    size_t wrong(double allowed, Kind kind, double absolute = 0)
    {
        const size_t size = host.size(), count = size / size_of(kind);
        if (size && device != own) move(own, device, size);
        CHECKED(aclrtMemcpy(host.data(), size, own, size, ACL_MEMCPY_DEVICE_TO_HOST));
        const std::string ends = name + ".bin";
        if (size) std::ofstream(kFolder + "output_" + ends, std::ios::binary).write(&host[0], size);
        std::vector<char> golden(size);
        std::ifstream(kFolder + "golden_" + ends, std::ios::binary).read(golden.data(), size);
        double scale = 0;
        for (size_t n = 0; n < count; ++n) {
            const double e = std::fabs(number(golden, n, kind));
            if (std::isfinite(e)) scale = std::fmax(scale, e);
        }
        size_t found = 0;
        for (size_t n = 0; n < count; ++n) {
            const double a = number(host, n, kind), e = number(golden, n, kind);
            const bool is_step = kind == f8e4m3 || kind == f8e5m2;
            const double unit = is_step ? 1 : std::fmax(std::fabs(e), scale * 1e-3);
            const double most = allowed * unit + absolute;
            if (a == e || (std::isnan(a) && std::isnan(e)) || std::fabs(a - e) <= most) continue;
            if (!found++) std::printf("%s[%zu] is %g, expected %g\n", name.c_str(), n, a, e);
        }
        return found;
    }
};

// The time of a launch in microseconds.
template <class Run> double timed(int count, const Run& run)
{
    aclrtEvent begin, end;
    float ms = 0;
    CHECKED(aclrtCreateEvent(&begin));
    CHECKED(aclrtCreateEvent(&end));
    CHECKED(aclrtRecordEvent(begin, stream));
    for (int n = 0; n < count; ++n) run();
    CHECKED(aclrtRecordEvent(end, stream));
    CHECKED(aclrtSynchronizeStream(stream));
    CHECKED(aclrtEventElapsedTime(&ms, begin, end));
    return ms * 1000 / count;
}
} // namespace

TEST(SUITE, CASE)
{
#ifdef RANKS
    EXPECT_TRUE(ForkAndRunWithHcclRootInfo(COUNT, 0, 0, [](int rank, const HcclRootInfo* root) {
    TestContext context; // HCCL_BUFFSIZE sets the size of windows
    const bool begun = context.Init(rank, COUNT, COUNT, 0, root);
    if (!begun || context.hostCtx.winSize < WINDOW) return false;
    const uint64_t* windows = context.hostCtx.windowsIn;
    stream = context.stream;
    const auto barrier = [&] { HcclHostBarrier(context.comm, stream); };
#else // RANKS
    CHECKED(aclInit(nullptr));
    CHECKED(aclrtSetDevice(0));
    CHECKED(aclrtCreateStream(&stream));
    const auto barrier = [] {};
#endif // RANKS
    {
ARRAYS
    const auto run = [&] {
        LAUNCH
    };
    barrier();
    const double first = timed(1, run); // the launch whose results are compared
    barrier();
JUDGED
#ifndef PTO_MACHINE
    std::printf("NAME: %.2f us a launch, PREDICTED\n", MEASURED);
#endif
    }
#ifdef RANKS
    return context.Finalize();
    }));
#else // RANKS
    aclrtDestroyStream(stream), aclrtResetDevice(0), aclFinalize();
#endif // RANKS
}
