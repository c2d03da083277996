"""What runs instances: one folder for each kind of engine or cloud, all behind the protocol in `instance/driver.py`.

Every folder declares itself in its `site.py` (`DRIVER`), and `registry.py` finds it there. To add one, copy
`_template/`. A driver knows its engine and the domain, never another driver.
"""
