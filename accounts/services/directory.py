"""Sign-in by a directory (LDAP, by ldap3): search for the person, then bind with the typed password."""

from __future__ import annotations

import logging
import secrets
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from socket import socket
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from ldap3 import NONE, SIMPLE, SUBTREE, SYNC, Connection, Server, Tls
from ldap3.core.exceptions import LDAPException
from ldap3.utils.conv import escape_filter_chars

from accounts.models import User
from accounts.services import identities
from accounts.services.identities import Arrival
from aiplatform.lib.errors import DomainError

log = logging.getLogger(__name__)
TIMEOUT_S = 5
MAX_LENGTH = 128  # signs of a name or password; more is work for nothing
STRATEGY = SYNC
MAIL, PERSON, PHONE, GROUPS = "mail", "cn", "telephoneNumber", "memberOf"


class DirectoryAway(DomainError, code="directory_away", status=503): ...


def sign_in(username: str, password: str) -> User | None:
    """Return the account for a name and password of the directory; None if it has no such user.

    Raises:
        DirectoryAway: it does not answer, or not as it should; accounts of this platform work all the same.
        NotLetIn: see `identities.enter`.
    """
    # An empty password would be an "unauthenticated bind" (RFC 4513), which a directory answers with success.
    if not username.strip() or not password.strip("\x00") or len(username) > MAX_LENGTH or len(password) > MAX_LENGTH:
        return None
    arrival = _sign_in(username.strip(), password)
    if arrival is None:
        return None
    candidate = identities.by_name(arrival.username) if settings.LDAP_LINK_BY_NAME else None
    return identities.enter(arrival, candidate=candidate, roles=settings.LDAP_ROLES, own_name=True)


def _sign_in(username: str, password: str) -> Arrival | None:
    try:
        entry = _find_entry(username)
        # An unknown name takes as long as a known one: a bind that cannot succeed.
        name = str(entry["dn"]) if entry else f"uid={secrets.token_hex(8)},{settings.LDAP_BASE}"
        with _connected(name, password) as connection:
            if not connection.bind() or entry is None:
                return None
        return _arrival(entry["attributes"])
    except (LDAPException, OSError, ssl.SSLError) as exc:
        log.warning("directory away: %s", exc)
        raise DirectoryAway(_("The user directory does not respond. Local accounts can still sign in.")) from exc


def _server() -> Server:
    tls = Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=settings.LDAP_CA or None, version=ssl.PROTOCOL_TLS_CLIENT)
    return Server(settings.LDAP_URL, tls=tls, connect_timeout=TIMEOUT_S, get_info=NONE)


@contextmanager
def _connected(name: str, password: str) -> Iterator[Connection]:
    """Open a connection, encrypted unless the operator chose otherwise; it is not bound yet."""
    connection = Connection(
        _server(),
        user=name or None,
        password=password or None,
        authentication=SIMPLE if name else None,
        client_strategy=STRATEGY,
        receive_timeout=TIMEOUT_S,
        auto_referrals=False,  # another server is no reason to hand it the password
        read_only=True,
    )
    try:
        connection.open()
        if settings.LDAP_URL.startswith("ldap://") and settings.LDAP_SECURITY == "starttls":
            connection.start_tls()
        yield connection
    finally:
        connection_socket = connection.socket
        connection.unbind()
        if isinstance(connection_socket, socket):
            connection_socket.close()  # ldap3 leaves it open after a connection without response


def _find_entry(username: str) -> Mapping[str, Any] | None:
    """Return the one entry of the user; None for no or several entries."""
    wanted = settings.LDAP_FILTER.replace("{username}", escape_filter_chars(username))
    names = [settings.LDAP_ID_ATTRIBUTE, settings.LDAP_NAME_ATTRIBUTE, MAIL, PERSON, PHONE, GROUPS]
    with _connected(settings.LDAP_BIND_DN, settings.LDAP_BIND_PASSWORD) as connection:
        if not connection.bind():
            raise LDAPException(f"AIP_LDAP_BIND_DN may not bind: {connection.result.get('description')}")
        connection.search(settings.LDAP_BASE, wanted, search_scope=SUBTREE, attributes=names, size_limit=2)
        entries = [entry for entry in connection.response or [] if entry.get("type") == "searchResEntry"]
    return entries[0] if len(entries) == 1 else None


def _texts(attributes: Mapping[str, Any], name: str) -> list[str]:
    value_or_values = attributes.get(name) or []
    values = value_or_values if isinstance(value_or_values, list) else [value_or_values]
    return [value.hex() if isinstance(value, bytes) else str(value).replace("\x00", "").strip() for value in values]


def _arrival(attributes: Mapping[str, Any]) -> Arrival:
    def first(name: str) -> str:
        return next(iter(_texts(attributes, name)), "")

    subject = first(settings.LDAP_ID_ATTRIBUTE)
    if not subject:
        raise LDAPException(f"the entry has no {settings.LDAP_ID_ATTRIBUTE} (AIP_LDAP_ID_ATTRIBUTE)")
    return Arrival(
        issuer=settings.LDAP_URL,
        subject=subject[:300],
        username=first(settings.LDAP_NAME_ATTRIBUTE),
        nickname=first(PERSON),
        email=first(MAIL),
        phone=first(PHONE),
        groups=frozenset(_texts(attributes, GROUPS)),
    )
