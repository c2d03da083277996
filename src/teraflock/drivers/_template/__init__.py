"""A driver to copy: what a cloud that rents out machines needs, without the API calls.

1. Copy this folder to `drivers/<kind>/`, and rename the class. The folder name is the `kind` of its sites.
2. In `driver.py`, implement `types`, `_machines`, `_rent` and `_give_back`. Map every error of the cloud to
   one in `instance/engine_errors.py`: the error decides whether a launch is retried, tried elsewhere or abandoned.
3. In `site.py`, declare the options and which of them are secrets.
4. Add a capability only together with the calls that it needs.
5. Run `tests/contract/driver/test_rented_drivers.py` against a fake of the cloud, as it does with this
   template.

Until then, every call raises an error that names the method to implement.
"""
