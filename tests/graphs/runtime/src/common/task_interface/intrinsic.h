#pragma once
#include <cstdint>
#include "tensor.h"
constexpr int COMPLETION_TYPE_COUNTER = 0;
struct DeferredCompletionEntry { uint64_t addr; uint32_t expected_value; int completion_type; };
struct DeferredCompletionSlab { uint32_t count; DeferredCompletionEntry entries[4]; };
struct AsyncCtx {
    DeferredCompletionSlab* left;
    static AsyncCtx make(PTO2TaskId, DeferredCompletionSlab* slab) { return {slab}; }
};
struct LocalContext { int32_t s_block_idx, s_block_num; AsyncCtx async_ctx; };
struct GlobalContext { int32_t sub_block_id; };
constexpr int SPMD_LOCAL_CONTEXT_INDEX = 48, SPMD_GLOBAL_CONTEXT_INDEX = 49;
inline int32_t get_block_idx(int64_t* args) { return ((LocalContext*)args[SPMD_LOCAL_CONTEXT_INDEX])->s_block_idx; }
inline int32_t get_sub_block_id(int64_t* args) { return ((GlobalContext*)args[SPMD_GLOBAL_CONTEXT_INDEX])->sub_block_id; }
