"""Copies of disks on other hosts, from which instances start again when their own host is lost."""
