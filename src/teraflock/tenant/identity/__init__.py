"""Sign-in by an identity provider (OpenID Connect)."""
