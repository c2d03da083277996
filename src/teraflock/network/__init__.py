"""Networks: each project's part of the address range, the addresses in it, and ports on hosts."""
