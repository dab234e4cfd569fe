"""What tile instructions do, one file a family."""
