"""Runs: jobs that must finish by a deadline, at the lowest expected cost, on machines that can be taken away.

`survival.py` and `learn.py` learn from past availability how long spot places stay. `values.py` computes the expected
cost to finish from every state. `policy.py` decides where a run should be now and is pure; its guard keeps the deadline
as long as a steady place (on-demand, or an own card) can be had. `simulate.py` replays a policy on recorded
availability. Nothing here is imported when `tera` starts: `values.py` needs numpy.
"""
