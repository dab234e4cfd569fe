"""What DMA and communication do."""
