"""Verify an ID token (OpenID Connect Core 1.0, section 3.1.3.7).

mozilla-django-oidc checks neither audience nor issuer, so this module replaces its verification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

import jwt

from redrive_service.oidc.refusals import UNVERIFIED, SignInRefused

#: Accepted signature algorithms with their key types. `none` and HMAC are refused: anybody could sign, without a key or
#: with the provider's public key.
KEY_TYPES: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
_CLOCKS_DIFFER: Final = 60  # seconds by which the provider's clock may differ from this machine's
_REQUIRED: Final = ["iss", "sub", "aud", "exp", "iat"]
_LONGEST_SUBJECT: Final = 255  # characters of `sub` (OpenID Connect Core 1.0, section 2)


def verified(
    token: object, keys: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str | None
) -> dict[str, Any]:
    """Verify the ID token, and return its claims. `nonce` is the nonce of this sign-in; without it, refuse the token.

    Raises:
        SignInRefused: the token is not from the provider, or not for this sign-in.
    """
    if not isinstance(token, str):
        _refuse("the provider sent no ID token")
    try:
        header = jwt.get_unverified_header(token)
        key = _key(keys, header)
        claims = jwt.decode(
            token,
            key,
            algorithms=[header["alg"]],
            audience=client_id,
            issuer=issuer,
            leeway=_CLOCKS_DIFFER,
            options={"require": _REQUIRED, "enforce_minimum_key_length": True},
        )
    except jwt.PyJWTError as error:
        _refuse(f"ID token: {type(error).__name__}")
    _check_party(claims, client_id)
    _check_nonce(claims, nonce)
    if not 0 < len(claims["sub"]) <= _LONGEST_SUBJECT or not claims["sub"].isprintable():
        _refuse("ID token: sub is empty, too long or unprintable")
    return claims


def _key(keys: Mapping[str, Any], header: Mapping[str, Any]) -> jwt.PyJWK:
    """Return the provider's signing key that the token's header names. A key in the header itself is not used."""
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in KEY_TYPES:
        _refuse(f"ID token: the algorithm {algorithm!r} is not accepted")
    listed = keys.get("keys")
    fitting = [
        key
        for key in (listed if isinstance(listed, list) else [])
        if isinstance(key, dict)
        and key.get("kty") == KEY_TYPES[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (kid is None or key.get("kid") == kid)
    ]
    if len(fitting) != 1:
        _refuse(f"ID token: {len(fitting)} keys of the provider fit its header, not one")
    return jwt.PyJWK(fitting[0], algorithm=algorithm)


def _check_party(claims: Mapping[str, Any], client_id: str) -> None:
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if several else client_id) != client_id:
        _refuse("ID token: it was issued to another client (azp)")


def _check_nonce(claims: Mapping[str, Any], nonce: str | None) -> None:
    if not nonce or claims.get("nonce") != nonce:
        _refuse("ID token: another sign-in's nonce")


def _refuse(why: str) -> NoReturn:
    raise SignInRefused(UNVERIFIED, why)
