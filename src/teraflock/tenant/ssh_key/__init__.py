"""SSH keys of members, for the instances that they launch."""
