// Ranks: groups, signals and sessions of kernels; of MPI and HCCL what hosts of several ranks ask for.
//
// The ranks of a program are hosts in one process that take turns: a pointer to another rank's memory is a pointer.
#pragma once
#include <pto/machine/host.hpp>

namespace pto::comm {
template <class G> struct ParallelGroup : machine::GroupTag {
    using value_type = G;
    G* tensors = nullptr;
    int nranks = 0, rootIdx = -1;
    constexpr ParallelGroup() = default;
    constexpr ParallelGroup(G* each, int count, int root) : tensors(each), nranks(count), rootIdx(root) {}
    static constexpr ParallelGroup Create(G* each, int count, int root) { return {each, count, root}; }
    constexpr int GetRootIdx() const { return rootIdx; }
    constexpr int GetSize() const { return nranks; }
    constexpr bool empty() const { return !nranks; }
    constexpr G& operator[](int rank) { return tensors[rank]; }
    constexpr const G& operator[](int rank) const { return tensors[rank]; }
};
enum class NotifyOp : uint8_t { AtomicAdd, Set };
enum class WaitCmp : uint8_t { EQ, NE, GT, GE, LT, LE };
enum class ReduceOp : uint8_t { Sum, Max, Min };
enum class DmaEngine : uint8_t { SDMA, URMA, RDMA };
enum class CollEngine : uint8_t { AIV, CCU };
using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>>;
template <class E, class S, class T, Layout L = Layout::ND> using GlobalSignal = GlobalTensor<E, S, T, L>;
template <int R, int C> struct Signal2D : GlobalTensor<int32_t, Shape<1, 1, 1, R, C>, Stride<1, 1, 1, DYNAMIC, 1>> {
    using Base = GlobalTensor<int32_t, Shape<1, 1, 1, R, C>, Stride<1, 1, 1, DYNAMIC, 1>>;
    Signal2D(int32_t* p, int pitch = C) : Base(p, typename Base::Shape(), typename Base::Stride(pitch)) {}
};
} // namespace pto::comm

namespace pto::machine {
// Every element of a tensor in order: `f(offset)`.
template <class G, class F> void eachElement(const G& g, F f)
{
    const auto& n = g.shape_.shape;
    const auto& s = g.stride_.stride;
    for (int64_t a = 0; a < n[0]; ++a) for (int64_t b = 0; b < n[1]; ++b) for (int64_t c = 0; c < n[2]; ++c)
        for (int64_t d = 0; d < n[3]; ++d) for (int64_t e = 0; e < n[4]; ++e)
            f(a * s[0] + b * s[1] + c * s[2] + d * s[3] + e * s[4]);
}
template <class D, class S> void copyElements(D& to, S& from, uint64_t offset)
{
    drain();
    auto* source = (typename S::DType*)((char*)from.data_ + offset);
    auto* target = (typename D::DType*)((char*)to.data_ + offset);
    std::vector<typename S::DType> held;
    eachElement(from, [&](int64_t at) { held.push_back(source[at]); });
    size_t next = 0;
    eachElement(to, [&](int64_t at) { if (next < held.size()) target[at] = held[next++]; });
}
} // namespace pto::machine

namespace pto::comm {
// Whether all words of a signal compare so now: others have gone on meanwhile.
template <class S, class... E> bool TTEST(S& signal, int32_t value, WaitCmp cmp, E&... e)
{
    (e.Wait(), ...);
    machine::stop(machine::FLUSH);
    bool all = true;
    machine::eachElement(signal, [&](int64_t at) {
        const int32_t x = signal.data_[at];
        all &= cmp == WaitCmp::EQ ? x == value : cmp == WaitCmp::NE ? x != value : cmp == WaitCmp::GT ? x > value
            : cmp == WaitCmp::GE ? x >= value : cmp == WaitCmp::LT ? x < value : x <= value;
    });
    return all;
}
// Transfers that go on while the core works: done when they are asked for, so events are complete at once.
namespace sdma {
constexpr uint32_t UB_ALIGN_SIZE = 256, kDefaultSdmaBlockBytes = 1 << 20;
struct SdmaBaseConfig { uint64_t block_bytes = kDefaultSdmaBlockBytes, comm_block_offset = 0; uint32_t queue_num = 1; };
}
struct AsyncSession {
    bool valid = true;
    DmaEngine engine = DmaEngine::SDMA;
    uint64_t offset = 0;  // in bytes, of both sides
};
struct AsyncEvent {
    uint64_t handle = 0;
    DmaEngine engine = DmaEngine::SDMA;
    constexpr AsyncEvent() = default;
    constexpr AsyncEvent(uint64_t h, DmaEngine e) : handle(h), engine(e) {}
    constexpr bool valid() const { return handle; }
    bool Wait(const AsyncSession&) const { return true; }
    bool Test(const AsyncSession&) const { return true; }
};
template <DmaEngine E = DmaEngine::SDMA, class... A> bool BuildAsyncSession(A&&... a)
{
    uint64_t offset = 0;
    auto get = [&](auto& x) { if constexpr (std::is_same_v<std::decay_t<decltype(x)>, sdma::SdmaBaseConfig>) offset = x.comm_block_offset; };
    auto set = [&](auto& x) { if constexpr (std::is_same_v<std::decay_t<decltype(x)>, AsyncSession>) x = {true, E, offset}; };
    (get(a), ...);
    (set(a), ...);
    return true;
}
template <DmaEngine E = DmaEngine::SDMA, class D, class S, class... A> AsyncEvent TPUT_ASYNC(D& dst, S& src, const AsyncSession& session, A&&...)
{
    machine::copyElements(dst, src, session.offset);
    return {1, E};
}
template <DmaEngine E = DmaEngine::SDMA, class D, class S, class... A> AsyncEvent TGET_ASYNC(D& dst, S& src, const AsyncSession& session, A&&...)
{
    machine::copyElements(dst, src, session.offset);
    return {1, E};
}
namespace sdma {
struct SdmaWorkspaceManager {
    bool Init(...) { return true; }
    void Finalize() {}
    void* GetWorkspaceAddr() { static uint8_t words[64]; return words; }
};
} // namespace sdma
namespace urma {  // every rank tells where its memory begins
inline uint64_t bases[64];
struct UrmaWorkspaceManager {
    bool Init(void*, uint32_t rank, uint32_t, void* address, uint64_t) { bases[rank] = uint64_t(address); return true; }
    void Finalize() {}
    void* GetWorkspaceAddr() { return bases; }
};
inline uint64_t UrmaPeerMrBaseAddr(const void* workspace, uint32_t peer) { return static_cast<const uint64_t*>(workspace)[peer]; }
}
} // namespace pto::comm

// ---- hosts
using HcclComm = void*;
using HcclResult = int;
enum { HCCL_SUCCESS = 0, HCCL_ROOT_INFO_BYTES = 4108 };
struct HcclRootInfo { char internal[HCCL_ROOT_INFO_BYTES]; };
enum aclDataType { ACL_DT_UNDEFINED = -1, ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_INT32 };
enum aclFormat { ACL_FORMAT_UNDEFINED = -1, ACL_FORMAT_NCHW, ACL_FORMAT_NHWC, ACL_FORMAT_ND };
#if PTO_MACHINE_PROFILE == 5
#define PTO_URMA_SUPPORTED 1
#elif PTO_MACHINE_PROFILE == 1
#define HcclHostBarrier(...) ((void)0)
#define SKIP_IF_RANKS_LT(n) ((void)0)
template <class... A> bool CommMpiInit(A&&...) { return true; }
inline void CommMpiFinalize() {}
inline int CommMpiRank() { return 0; }
inline int CommMpiSize() { return 1; }
constexpr uint32_t HCCL_MAX_RANK_NUM = 64;
struct CommDeviceContext {
    uint64_t workSpace, workSpaceSize;
    uint32_t rankId, rankNum;
    uint64_t winSize, windowsIn[HCCL_MAX_RANK_NUM], windowsOut[HCCL_MAX_RANK_NUM];
};
#endif
extern "C" {
int MPI_Barrier(int);
int MPI_Comm_rank(int, int* rank);
int MPI_Comm_size(int, int* size);
int HcclGetRootInfo(HcclRootInfo*);
int HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo*, uint32_t rank, HcclComm*);
int HcclGetCommName(HcclComm, char*);
int HcclBarrier(HcclComm, void* stream);
int HcclCommDestroy(HcclComm);
int HcclAllocComResourceByTiling(HcclComm, void* stream, void* tiling, void** context);
int HcomGetCommHandleByGroup(const char*, HcclComm*);
int HcomGetL0TopoTypeEx(const char*, uint32_t* topology, uint32_t);
int rtSetDevice(int32_t);
int rtStreamCreate(void**, int32_t);
int rtStreamDestroy(void*);
}
inline aclError aclrtGetDeviceCount(uint32_t* n) { *n = 64; return 0; }
inline aclError aclrtGetDevice(int32_t* n) { *n = 0; return 0; }
inline aclError aclrtCreateEvent(aclrtEvent* e) { *e = nullptr; return 0; }
inline aclError aclrtDestroyEvent(aclrtEvent) { return 0; }
inline aclError aclrtRecordEvent(aclrtEvent, aclrtStream) { return 0; }
inline aclError aclrtEventElapsedTime(float* ms, aclrtEvent, aclrtEvent) { *ms = 0; return 0; }
