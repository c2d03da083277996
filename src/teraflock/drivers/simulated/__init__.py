"""An engine that runs nothing: hosts, cards and guests that exist only in a file, or in memory, and say so.

For demonstrations, for tests with faults on demand, and for trying the house at the size of a data centre. Everything
it shows calls itself simulated: the hosts by their names, the driver by `simulated`, the guest's programs by what
they print. It is as strict as the strictest engine: what a real one would let pass and regret (a card in two guests,
an address given twice) is refused.

What is asked stands in `engine.py`, what exists in `model.py` and `world.py`, what goes wrong in `faults.py` and
`trouble.py`.
"""
