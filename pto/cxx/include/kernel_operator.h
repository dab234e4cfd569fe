// The other class library of the chips: kernels include it beside this one, and take this one's tensors.
#pragma once
#include <pto/pto-inst.hpp>
namespace AscendC { using pto::GlobalTensor; }
