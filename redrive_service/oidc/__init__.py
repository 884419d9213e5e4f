"""Sign-in by an OpenID provider (docs/sign_in.md, docs/adr/0047)."""
