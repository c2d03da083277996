"""The program on an own server: what cards, processors, memory and disks it has, and how they are."""
