"""Meanings of DMA and communication."""
