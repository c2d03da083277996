"""What a workload needs on each GPU: replay of the allocator, time per operation, intervals."""
