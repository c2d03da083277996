"""The hardware of this host: cards, processors, memory and disks, and the health of its cards."""
