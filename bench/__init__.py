"""`make bench`: how fast the house is, beside the bars that its issues set and beside peers on the same data.

Measured, never asserted: a machine that others use too must not fail anybody's work. A module measures one noun, runs
what it measures in processes of its own (so that one figure does not colour the next), and is named in `__main__`.
"""
