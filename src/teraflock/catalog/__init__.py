"""Known hardware and providers: cards, other accelerators, their names, and providers.

All of it is data (`data/*.csv`, `data/providers.toml`), read once on first use and never changed. Invariants: an id
always names the same card, because stored offers refer to it; an uncertain figure is left empty, never guessed; every
fact about a provider has its evidence. Prices and shapes belong to `offer/`; the speed of a card for a workload belongs
to `estimate/`.
"""
