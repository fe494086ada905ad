"""The command line: its groups, and the commands that use several parts of tfrecreg."""
