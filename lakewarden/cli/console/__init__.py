"""The console: SQL typed at a terminal, read from a file or given as an argument."""
