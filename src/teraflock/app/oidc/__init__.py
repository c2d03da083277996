"""OpenID Connect: the client of an identity provider."""
