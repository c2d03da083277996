"""Preemptible instances on own hosts: who runs on idle cards, who gives way, and what a bid pays."""
