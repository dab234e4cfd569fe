"""What work items do: alone, with the other lanes of their warp, and to memory."""
