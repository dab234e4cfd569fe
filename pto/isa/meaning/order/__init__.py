"""What flags, barriers and queues do in a run in program order."""
