"""Own servers: system containers by LXD, or by Incus, which speaks the same REST family.

All that this driver makes on a host carries the installation's id, in its name and as `user.teraflock`:
the LXD project `tera-<id>`, the storage pool `tera-<id>`, bridges `tf<8 hex>`, the nftables table
`inet tera_<id>`. Nothing without that mark is ever changed or removed.
"""
