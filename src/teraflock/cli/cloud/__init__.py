"""The cloud's commands: a file for each group. They speak to a server, by the typed client and nothing else."""
