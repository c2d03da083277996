"""The typed client of the API. The command line uses nothing else."""
