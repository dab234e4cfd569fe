"""Instructions around the matrix unit as LLVM text."""
