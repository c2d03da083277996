"""What hardware exists and who rents it out: cards, other accelerators, their names, providers.

All of it is data (`data/*.csv`, `data/providers.toml`), read once when first asked for and never changed.
What holds: an id names one card for ever, since stored offers refer to it; a figure nobody is sure of is
left empty, never guessed; a fact about a provider carries where it was read.
Prices and shapes are offers and live in `offer/`; what a card is worth for a job is `estimate/`.
"""
