"""The typed client of the API. The command line reaches the server only through it.

client.py       Client: one object per noun on one connection
noun.py         what these objects share
transport.py    requests over the standard library's http.client, with safe retries
errors.py       API problems as exceptions of the error tree
NOUN.py         one file per noun: instance.py, project.py, price.py, ...
"""

from teraflock.client.client import Client

__all__ = ["Client"]
