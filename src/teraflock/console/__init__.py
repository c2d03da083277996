"""The console: web pages for the whole cloud, rendered on the server, on top of the typed client of the API."""
