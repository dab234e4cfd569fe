// The names by which hosts of several ranks begin in pto-isa's tests of communication; exported folders use them.
#pragma once
#include <pto/machine/ranks.hpp>

struct TestContext {
    void* stream = nullptr;
    HcclComm comm = nullptr;
    struct Windows { uint64_t work, bytes; uint32_t rankId, rankNum; uint64_t winSize, windowsIn[64], windowsOut[64]; } hostCtx{};
    bool Init(int rank, int ranks, int, int, const HcclRootInfo* root)
    {
        void* context = nullptr;
        rtStreamCreate(&stream, 0);
        HcclCommInitRootInfo(uint32_t(ranks), root, uint32_t(rank), &comm);
        HcclAllocComResourceByTiling(comm, stream, nullptr, &context);
        hostCtx = *(Windows*)context;
        return true;
    }
    bool Finalize() { return !HcclCommDestroy(comm); }
};
inline void HcclHostBarrier(HcclComm comm, void* stream) { HcclBarrier(comm, stream); }
template <class F> bool ForkAndRunWithHcclRootInfo(int ranks, int, int, F&& work)
{
    int rank = 0, size = 0;
    HcclRootInfo root{};
    MPI_Comm_rank(0, &rank), MPI_Comm_size(0, &size);
    return size == ranks && work(rank, &root);
}
