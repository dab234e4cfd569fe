"""Pictures and pages for people. What is drawn is computed below; nothing is decided here."""
