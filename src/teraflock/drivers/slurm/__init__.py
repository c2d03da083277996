"""Jobs of a Slurm cluster as instances: each is a batch job with an SSH server of its own.

The server needs Slurm's client commands, and access as a user of the cluster. All jobs of a site belong to that user.
"""
