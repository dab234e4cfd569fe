#!/bin/sh
# Builds and runs NAME on a board. PTO_ISA names a checkout of pto-isa; the environment of
# CANN is set: source /usr/local/Ascend/ascend-toolkit/set_env.sh
set -e
cd "$(dirname "$0")"
cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build
#ifdef RANKS
cd build && python3 ../gen_data.py && cd bin && mpirun -n COUNT ./NAME
#else // RANKS
cd build && python3 ../gen_data.py && cd bin && ./NAME
#endif // RANKS
