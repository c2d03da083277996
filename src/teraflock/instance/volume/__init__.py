"""Volumes: disks that outlive instances."""
