"""The typed client of the API. The command line uses nothing else.

client.py       Client: all nouns on one connection
transport.py    requests over the standard library's http.client, tried again where that is safe
errors.py       the API's problems back into our error tree
events.py       events as they happen; a stream that breaks off is taken up again
instances.py, images.py, hosts.py, tenants.py     a file for each noun
"""

from teraflock.client.client import Client

__all__ = ["Client"]
