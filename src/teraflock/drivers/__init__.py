"""Drivers: one folder for each kind of engine or cloud. All implement the protocol in `instance/driver.py`.

Each folder declares its driver in `site.py` (`DRIVER`), where `registry.py` finds it. To add a driver, copy
`_template/`. A driver knows its engine and the domain, but no other driver.
"""
