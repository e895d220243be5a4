"""The command line: the arguments of all commands, and one module for each group, loaded when it is chosen."""
