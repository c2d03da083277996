"""The HTTP API, `/v1`, built on Litestar: routes, permissions, limits and errors."""
