"""The commands, by what they are about. They and `spoken` are the only parts of the harness that print."""
