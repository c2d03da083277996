"""The HTTP API: Litestar, /v1, who may do what, one form of error."""
