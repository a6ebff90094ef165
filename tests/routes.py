"""Every route of the site, and what it declares."""

from __future__ import annotations

from django.urls import URLPattern

#: Routes without an action, each with its reason.
PUBLIC = {
    "healthz": "load balancers ask without an account; says only that the site is up",
    "api-pipeline-hook": "webhooks have no account; guarded by a signature with the trigger's secret",
    "help": "documentation, the same for everybody",
    "help-file": "documentation, the same for everybody",
    "mlflow-link": "reads a fragment in the browser and leads to a page that asks for an account",
    "client": "needed before anybody can sign in; the same for everybody",
    "client-file": "needed before anybody can sign in; the same for everybody",
    "auth-device": "a program asks to be signed in; it gets a token when a user allowed it",
    "auth-device-token": "guarded by the secret of a sign-in that a user allowed",
    "metrics": "takes the metrics token or an operator's API token; Prometheus has no account",
    "login": "the sign-in page",
    "sign-on": "the way to an identity provider",
    "sign-on-back": "the way back from it; guarded by what the session kept and a token the provider signed",
    "register": "strangers ask for an account",
    "welcome": "guarded by the one-time link of the console",
    "set-password": "guarded by a one-time link",
    "code": "the second step of signing in; guarded by a password given just before",
    "give-back": "ends a take-over; does nothing for anybody else",
    "password": "every signed-in person may change their own password, also before they have rights",
    "auth-token": "takes name and password, counts failures like the sign-in page",
    "node-join": "takes a one-time token; a machine has no account",
    "edge-agent": "the program that devices run; the same for everybody, and no secret",
    "edge-enrol": "takes a one-time code; a device has no account",
    "edge-word": "takes the token of a device",
    "edge-package": "takes the token of a device, and gives what its group runs",
    "edge-report": "takes the token of a device",
    "edge-samples-sent": "takes the token of a device",
    "node-probe": "takes the random id of a machine that joined",
    "admin-login": "sends strangers to the sign-in page",
    "logout": "ends the caller's own session",
    "jsi18n": "texts of the pages, the same for everybody",
    "schema": "description of the API, for signed-in people",
    "api-docs": "description of the API, for signed-in people",
    "api-redoc": "leads to the description of the API",
}


def routes(patterns, prefix=""):
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield prefix + str(pattern.pattern), pattern
        elif not str(pattern.pattern).startswith("admin/"):  # Django admin asks for its own permissions
            yield from routes(pattern.url_patterns, prefix + str(pattern.pattern))


def declares(pattern) -> bool:
    view = pattern.callback
    if getattr(view, "needs", None):
        return True
    cls, actions = getattr(view, "cls", None) or getattr(view, "view_class", None), getattr(view, "actions", None)
    if cls is None or not getattr(cls, "needs", None):
        return False
    return isinstance(cls.needs, str) or set((actions or {}).values()) <= set(cls.needs)
