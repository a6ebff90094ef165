"""Sign-in by OpenID Connect: authorization code flow with PKCE, state and nonce, by Authlib.

Nothing is kept between two sign-ins: the provider's description and keys are read anew each time, so that a changed
key needs no restart, and no cache that others can write decides who somebody is.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from django.conf import settings
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from requests import RequestException

from accounts.models import User
from accounts.services import identities
from accounts.services.identities import Arrival
from aiplatform.lib.errors import DomainError

log = logging.getLogger(__name__)
TIMEOUT_S = 5.0
LEEWAY_S = 60  # that the provider's clock may differ
#: Signatures by the provider's private key only: never "none", never a shared secret passed off as a key.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")


class ProviderAway(DomainError):
    code = "provider_away"
    status = 503


class NotProved(DomainError):
    """What came back proves nothing; why stands in the log, not on the page."""

    code = "not_proved"
    status = 422


def is_on() -> bool:
    """Whether the sign-in page offers it."""
    return bool(settings.OIDC_ISSUER and settings.OIDC_CLIENT_ID)


def begin(*, back: str) -> tuple[str, dict[str, str]]:
    """Where to send the browser, and what its session must keep until it is back.

    Args:
        back: address of our page that the provider sends the browser to.

    Raises:
        ProviderAway: nobody answers there, or not as a provider does.
    """
    with _speaking(back) as session:
        described = _described(session)
        kept = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        address, _state = session.create_authorization_url(
            described["authorization_endpoint"],
            state=kept["state"],
            nonce=kept["nonce"],
            code_verifier=kept["verifier"],
        )
    return str(address), kept


def finish(*, kept: Mapping[str, str], answered: Mapping[str, str], back: str) -> User:
    """The account of the person the provider names.

    Args:
        kept: what `begin` gave the session; use it once.
        answered: the query with which the browser came back.

    Raises:
        NotProved: another browser's answer, a code that was used, or a token that does not hold.
        ProviderAway: nobody answers there.
        NotLetIn: see `identities.enter`.
    """
    if not constant_time_compare(answered.get("state", ""), kept.get("state") or secrets.token_urlsafe()):
        raise _not_proved("another state")
    if answered.get("error") or not answered.get("code"):
        raise _not_proved(f"the provider said {answered.get('error', 'nothing')!r}")
    with _speaking(back) as session:
        described = _described(session)
        if answered.get("iss", described["issuer"]) != described["issuer"]:
            raise _not_proved("the answer comes from another provider")  # RFC 9207
        token = session.fetch_token(
            described["token_endpoint"],
            grant_type="authorization_code",
            code=answered["code"],
            code_verifier=kept["verifier"],
            allow_redirects=False,
        )
        claims = _proved(session, described, token, kept["nonce"])
        wanted = (settings.OIDC_USERNAME_CLAIM, "email", settings.OIDC_ROLE_CLAIM or "email")
        if not all(claims.get(name) for name in wanted):
            claims = _more(session, described, claims)
    arrival = _arrival(claims)
    candidate = identities.by_email(arrival.email) if settings.OIDC_LINK_BY_EMAIL else None
    return identities.enter(arrival, candidate=candidate, roles=settings.OIDC_ROLES)


def _not_proved(why: str) -> NotProved:
    log.warning("openid sign-in refused: %s", why)
    return NotProved(_("This sign-in could not be completed. Begin again."))


@contextmanager
def _speaking(back: str) -> Iterator[OAuth2Session]:
    """A client of the provider; its silence and its refusals become sentences."""
    try:
        with OAuth2Session(
            settings.OIDC_CLIENT_ID,
            settings.OIDC_CLIENT_SECRET or None,
            scope=" ".join(settings.OIDC_SCOPES),
            redirect_uri=back,
            code_challenge_method="S256",
            default_timeout=TIMEOUT_S,
        ) as session:
            yield session
    except (JoseError, AuthlibBaseError) as exc:
        raise _not_proved(str(exc)) from exc
    except (RequestException, ValueError, KeyError, TypeError) as exc:  # the last three: no words of a provider
        log.warning("openid provider away: %s", exc)
        raise ProviderAway(
            _("The sign-in service does not answer as it should. Try again in a moment, or sign in with a password.")
        ) from exc


def _read(session: OAuth2Session, address: str, **more: Any) -> dict[str, Any]:
    answer = session.get(address, allow_redirects=False, headers={"Accept": "application/json"}, **more)
    answer.raise_for_status()
    said = answer.json()
    if not isinstance(said, dict):
        raise ValueError(f"{address} answers no JSON object")
    return said


def _described(session: OAuth2Session) -> dict[str, Any]:
    """What the provider says about itself (OpenID Connect Discovery)."""
    issuer = settings.OIDC_ISSUER
    said = _read(session, issuer.rstrip("/") + "/.well-known/openid-configuration", withhold_token=True)
    if said["issuer"].rstrip("/") != issuer.rstrip("/"):
        raise ValueError(f"the provider calls itself {said['issuer']!r}")
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        if not said[name].startswith("https://") and not issuer.startswith("http://"):
            raise ValueError(f"{name} is not secret on its way")
    methods = said.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if session.client_secret and "client_secret_basic" not in methods and "client_secret_post" in methods:
        session.token_endpoint_auth_method = "client_secret_post"  # noqa: S105 - the name of a method
    return said


def _proved(
    session: OAuth2Session, described: Mapping[str, Any], token: Mapping[str, Any], nonce: str
) -> dict[str, Any]:
    """The claims of the ID token, once signature, issuer, audience, time and nonce hold."""
    if not isinstance(token.get("id_token"), str):
        raise _not_proved("no ID token")
    keys = KeySet.import_key_set(_read(session, described["jwks_uri"], withhold_token=True))  # type: ignore[arg-type]  # joserfc names the shape of the key set, a server sends any JSON
    registry = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
    try:
        read = jwt.decode(token["id_token"], key=keys, registry=registry)
    except ValueError as exc:
        raise _not_proved(f"no token at all: {exc}") from exc
    claims = CodeIDToken(
        read.claims,
        read.header,
        {
            "iss": {"essential": True, "value": described["issuer"]},
            "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
        },
        {"nonce": nonce, "client_id": settings.OIDC_CLIENT_ID, "access_token": token.get("access_token")},
    )
    claims.validate(leeway=LEEWAY_S)
    if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
        raise _not_proved("an odd subject")
    return dict(claims)


def _more(session: OAuth2Session, described: Mapping[str, Any], claims: dict[str, Any]) -> dict[str, Any]:
    """What the user-info endpoint adds, where there is one; it must speak of the same person."""
    address = described.get("userinfo_endpoint")
    if not address:
        return claims
    said = _read(session, address)
    if said.get("sub") != claims["sub"]:
        raise _not_proved("user info about somebody else")
    return {**said, **claims}


def _text(claims: Mapping[str, Any], name: str) -> str:
    said = claims.get(name)
    return said.replace("\x00", "").strip() if isinstance(said, str) else ""


def _arrival(claims: Mapping[str, Any]) -> Arrival:
    groups: frozenset[str] | None = None
    if settings.OIDC_ROLE_CLAIM:
        said = claims.get(settings.OIDC_ROLE_CLAIM, [])
        groups = frozenset([said] if isinstance(said, str) else map(str, said) if isinstance(said, list) else [])
    return Arrival(
        issuer=settings.OIDC_ISSUER,
        subject=claims["sub"],
        username=_text(claims, settings.OIDC_USERNAME_CLAIM),
        nickname=_text(claims, "name"),
        email=_text(claims, "email") if claims.get("email_verified") is True else "",
        groups=groups,
    )
