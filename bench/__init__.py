"""`make bench`: measure how fast Teraflock is, compared with its targets and with similar tools on the same data.

Benchmarks never fail a build, because a shared machine may be busy. Each module measures one noun in separate
processes, so that figures do not influence each other, and is listed in `__main__`.
"""
