"""The texts of messages about pushes that rows keep as code and facts, and the acts of the audit trail."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

TEXTS = {
    "inner": _("%(host)s is inside this network. An operator can allow it with AIP_PUSH_ALLOWED."),
    "insecure": _(
        "%(host)s is addressed without encryption. Use https://; http:// is only for allowed internal hosts."
    ),
    "unknown": _("%(host)s not found. Check the address."),
    "silent": _("%(host)s does not respond: %(error)s"),
    "certificate": _("The certificate of %(host)s is not trusted: %(error)s. Add its certificate authority."),
    "bad_ca": _("The certificate authority of the target is not a PEM certificate."),
    "credentials": _(
        "%(host)s rejects the credentials (status %(status)s). Update them in the settings of the target."
    ),
    "no_room": _("%(host)s has no free space. Free space there, then export again."),
    "too_large": _("%(host)s does not accept files of this size."),
    "not_found": _("%(host)s has no such path (status %(status)s). Check the address and the options."),
    "redirected": _(
        "%(host)s redirects to %(other)s, which is not followed. If this is correct, use it as the address "
        "of the target."
    ),
    "answered": _("%(host)s responded with status %(status)s: %(error)s"),
    "clock": _("The clocks of %(host)s and the platform differ too much. An operator can set them."),
    "region": _("The bucket does not exist at %(host)s, or is in another region. Check the endpoint and the region."),
    "sign_in": _("%(host)s rejects this username with this key or password."),
    "host_key_changed": _(
        "%(host)s presents a different key than the pinned one. If the host was reinstalled, reset the "
        "host key of the target and test it; otherwise the connection may be intercepted."
    ),
    "host_key_unknown": _("The host key of %(host)s is unknown. Test the target first."),
    "not_writable": _("The account cannot write to the folder at %(host)s."),
    "no_folder": _("The folder does not exist at %(host)s and cannot be created."),
    "checksum": _("The file at %(host)s differs from the sent file. Do not use it."),
    "sealed": _("The secret of the target cannot be decrypted any more. Enter it again."),
    "version_gone": _("The version was deleted, or some of its files are missing."),
    "version_not_shared": _("The version is not shared with the user who pushed it any more."),
    "target_gone": _("The target was deleted, or is not shared with the user who pushed any more."),
    "gave_up": Wording(_("Failed after %(count)s attempts. Last error: %(why)s"), why=wording.nested),
    "died": _("Every process that sent it was terminated. It was tried %(count)s times."),
    "broke": _("Internal error while sending: %(error)s. An operator finds details in the log."),
}
VERBS = {
    "push_target_made": _("created the export target"),
    "push_target_changed": _("changed the export target"),
    "push_target_deleted": _("deleted the export target"),
    "push_host_key_forgotten": _("removed the host key of the export target"),
    "model_pushed": _("exported a version of"),
}
#: What the facts of these acts are called, for people.
FACTS = {"to": _("to")}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("push", TEXTS)
