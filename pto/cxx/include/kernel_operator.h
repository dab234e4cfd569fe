// The other class library of the chips: kernels include it beside this one, and take this one's tensors.
#pragma once
#include <pto/pto-inst.hpp>
#ifndef GM_ADDR
#define GM_ADDR __gm__ uint8_t*
#endif
namespace AscendC {
using pto::GlobalTensor;
inline int64_t GetBlockIdx() { return get_block_idx() * get_subblockdim() + get_subblockid(); }
inline int64_t GetBlockNum() { return get_block_num(); }
inline int64_t GetSubBlockIdx() { return get_subblockid(); }
inline int64_t GetSubBlockNum() { return get_subblockdim(); }
} // namespace AscendC
