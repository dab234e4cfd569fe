"""DMA as LLVM text."""
