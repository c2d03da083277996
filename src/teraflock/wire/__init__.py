"""The JSON shapes that leave the house, apart from the domain's own values even where they are alike.

A field once here stays, with its meaning; new ones may be added. `--json` and the API speak in these.
"""
