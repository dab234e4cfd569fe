// Tasks that end when counters have reached their values, for tests.
#pragma once
#include "intrinsic.h"
inline void end_at(int64_t* args, int32_t* counter, uint32_t value)
{
    DeferredCompletionSlab& left = *((LocalContext*)args[SPMD_LOCAL_CONTEXT_INDEX])->async_ctx.left;
    left.entries[left.count++] = {uint64_t(counter), value, COMPLETION_TYPE_COUNTER};
}
