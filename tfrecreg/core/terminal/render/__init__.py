"""The printed form of results, for commands of the core and of rooms. Text from data is escaped."""
