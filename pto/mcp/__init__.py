"""`pto mcp`: commands as tools for coding agents (Model Context Protocol)."""
