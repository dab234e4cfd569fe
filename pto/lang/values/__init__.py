"""The values of a kernel: arrays, tiles, registers, scalars."""
