"""Networks: each project's own part of the address range, addresses in it, ports on hosts."""
