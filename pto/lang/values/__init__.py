"""What a kernel computes with: arrays, tiles, registers, scalars."""
