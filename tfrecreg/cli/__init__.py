"""The command line: its groups, and the commands that combine several rooms."""
