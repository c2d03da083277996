"""Public clouds: one engine for all of them, and one module of pure functions per cloud.

`model.py` has the calls that a cloud module describes, `site.py` opens a site, `engine.py` makes the calls and keeps
the promises of `RentedDriver`, `http.py` sends them, `pacing.py` keeps to the provider's rates. `guest.py` writes the
first-boot files, `keys.py` derives SSH keys, `link.py` reaches a machine over SSH, `probe.py` judges what it finds.
"""
