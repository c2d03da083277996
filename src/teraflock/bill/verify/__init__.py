"""The proof of the books: everything is worked out again from the events, and compared row by row.

Nothing is shared with meter/ and the biller but the price book: no rule, no store, no value. What both had wrong alike
would be wrong in two texts written apart.
"""
