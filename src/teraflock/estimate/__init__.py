"""Estimates the memory and time of a workload on each GPU model: allocator replay, time per operation, intervals."""
