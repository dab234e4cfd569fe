"""The fast engine: LLVM code from the same rows; what it cannot compile, the reference does."""
