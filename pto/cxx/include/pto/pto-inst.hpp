// PTO kernels in C++ on pto-machine: include this, as `#include <pto/pto-inst.hpp>`.
// Instructions are generated from the instruction table: `pto cxx header -o DIR` writes the whole tree.
#ifndef PTO_INST_HPP
#define PTO_INST_HPP
#include <pto/machine/ranks.hpp>
#include <pto/machine/instructions.hpp>
#include <pto/machine/registers.hpp>
#include <pto/machine/register_names.hpp>
#include <pto/machine/names.hpp>
#endif
