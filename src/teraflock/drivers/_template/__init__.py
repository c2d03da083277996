"""A driver to copy: what a cloud that rents out machines needs, with the calls left open.

1. Copy this folder to `drivers/<kind>/`, and rename the class. The name of the folder is the `kind` of its sites.
2. In `driver.py`, fill in `types`, `_machines`, `_rent` and `_give_back`. Every error of the cloud becomes one of those
   in `instance/driver.py`: that decides whether a launch is repeated, tried elsewhere or given up.
3. In `site.py`, declare the options and which of them are secrets.
4. Name more capabilities only together with the calls they promise.
5. Run `tests/contract/driver/test_rented_drivers.py` against a fake of the cloud, as it does with this template.

As it is, every call ends in an error that says which method to fill in.
"""
