"""Vector micro-instructions as LLVM text."""
