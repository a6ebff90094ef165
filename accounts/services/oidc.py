"""Sign-in by OpenID Connect: authorization code flow with PKCE, state and nonce, by Authlib.

Nothing is kept between two sign-ins: the provider's description and keys are read each time, so that a changed
key needs no restart, and no cache that others can write decides an identity.
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


class ProviderAway(DomainError, code="provider_away", status=503): ...


class NotProved(DomainError, code="not_proved", status=422):
    """The provider's answer proves nothing. The reason is in the log, not on the page."""


def is_on() -> bool:
    """Whether the sign-in page offers OpenID Connect."""
    return bool(settings.OIDC_ISSUER and settings.OIDC_CLIENT_ID)


def start_sign_in(*, back: str) -> tuple[str, dict[str, str]]:
    """Return the provider's address to send the browser to, and what the session must keep until it returns.

    Args:
        back: address of our page that the provider sends the browser to.

    Raises:
        ProviderAway: no response, or not that of a provider.
    """
    with _speaking(back) as session:
        described = _described(session)
        session_values = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        address, _state = session.create_authorization_url(
            described["authorization_endpoint"],
            state=session_values["state"],
            nonce=session_values["nonce"],
            code_verifier=session_values["verifier"],
        )
    return str(address), session_values


def finish(*, session_values: Mapping[str, str], answered: Mapping[str, str], back: str) -> User:
    """Return the account of the person the provider authenticated.

    Args:
        session_values: returned by `start_sign_in`; valid once.
        answered: the query with which the browser came back.

    Raises:
        NotProved: another browser's answer, a code that was used, or a token that does not hold.
        ProviderAway: no response.
        NotLetIn: see `identities.enter`.
    """
    if not constant_time_compare(answered.get("state", ""), session_values.get("state") or secrets.token_urlsafe()):
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
            code_verifier=session_values["verifier"],
            allow_redirects=False,
        )
        claims = _proved(session, described, token, session_values["nonce"])
        wanted = (settings.OIDC_USERNAME_CLAIM, "email", settings.OIDC_ROLE_CLAIM or "email")
        if not all(claims.get(name) for name in wanted):
            claims = _fetch_user_info(session, described, claims)
    arrival = _arrival(claims)
    candidate = identities.by_email(arrival.email) if settings.OIDC_LINK_BY_EMAIL else None
    return identities.enter(arrival, candidate=candidate, roles=settings.OIDC_ROLES)


def _not_proved(why: str) -> NotProved:
    log.warning("openid sign-in refused: %s", why)
    return NotProved(_("This sign-in could not be completed. Start again."))


@contextmanager
def _speaking(back: str) -> Iterator[OAuth2Session]:
    """Turn failures of the provider into refusals with a message."""
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
            _("The sign-in service does not respond correctly. Try again in a moment, or sign in with a password.")
        ) from exc


def _read(session: OAuth2Session, address: str, **more: Any) -> dict[str, Any]:
    answer = session.get(address, allow_redirects=False, headers={"Accept": "application/json"}, **more)
    answer.raise_for_status()
    content = answer.json()
    if not isinstance(content, dict):
        raise ValueError(f"{address} answers no JSON object")
    return content


def _described(session: OAuth2Session) -> dict[str, Any]:
    """Fetch the provider's metadata (OpenID Connect Discovery)."""
    issuer = settings.OIDC_ISSUER
    metadata = _read(session, issuer.rstrip("/") + "/.well-known/openid-configuration", withhold_token=True)
    if metadata["issuer"].rstrip("/") != issuer.rstrip("/"):
        raise ValueError(f"the provider calls itself {metadata['issuer']!r}")
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        if not metadata[name].startswith("https://") and not issuer.startswith("http://"):
            raise ValueError(f"{name} is not secret on its way")
    methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if session.client_secret and "client_secret_basic" not in methods and "client_secret_post" in methods:
        session.token_endpoint_auth_method = "client_secret_post"  # noqa: S105 - the name of a method
    return metadata


def _proved(
    session: OAuth2Session, described: Mapping[str, Any], token: Mapping[str, Any], nonce: str
) -> dict[str, Any]:
    """Return the claims of the ID token, once signature, issuer, audience, time and nonce are right."""
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


def _fetch_user_info(session: OAuth2Session, described: Mapping[str, Any], claims: dict[str, Any]) -> dict[str, Any]:
    """Fetch the claims of the user-info endpoint, if there is one; its subject must be the same."""
    address = described.get("userinfo_endpoint")
    if not address:
        return claims
    user_info = _read(session, address)
    if user_info.get("sub") != claims["sub"]:
        raise _not_proved("user info about somebody else")
    return {**user_info, **claims}


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value.replace("\x00", "").strip() if isinstance(value, str) else ""


def _arrival(claims: Mapping[str, Any]) -> Arrival:
    groups: frozenset[str] | None = None
    if settings.OIDC_ROLE_CLAIM:
        roles = claims.get(settings.OIDC_ROLE_CLAIM, [])
        groups = frozenset([roles] if isinstance(roles, str) else map(str, roles) if isinstance(roles, list) else [])
    return Arrival(
        issuer=settings.OIDC_ISSUER,
        subject=claims["sub"],
        username=_text(claims, settings.OIDC_USERNAME_CLAIM),
        nickname=_text(claims, "name"),
        email=_text(claims, "email") if claims.get("email_verified") is True else "",
        groups=groups,
    )
