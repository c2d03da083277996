"""The typed client of the API. The command line uses nothing else.

client.py       Client: one object per noun on one connection
noun.py         what these objects share
transport.py    requests over the standard library's http.client, tried again where that is safe
errors.py       the API's problems back into our error tree
NOUN.py         one file per noun: instance.py, project.py, price.py, ...
"""

from teraflock.client.client import Client

__all__ = ["Client"]
