"""What runs instances: one folder for each engine, all behind the protocol in `instance/driver.py`.

A driver knows its engine and the domain, never another driver; only `app/` knows which driver is in use.
"""
