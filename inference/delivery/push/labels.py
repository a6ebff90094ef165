"""The texts of messages about pushes that rows keep as code and facts, and the acts of the audit trail."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

TEXTS = {
    "inner": Wording(_("%(host)s is inside this network. An operator can allow it with AIP_PUSH_ALLOWED.")),
    "insecure": Wording(
        _("%(host)s is addressed without encryption. Use https://; http:// is only for allowed internal hosts.")
    ),
    "unknown": Wording(_("%(host)s not found. Check the address.")),
    "silent": Wording(_("%(host)s does not respond: %(error)s")),
    "certificate": Wording(_("The certificate of %(host)s is not trusted: %(error)s. Add its certificate authority.")),
    "bad_ca": Wording(_("The certificate authority of the target is not a PEM certificate.")),
    "credentials": Wording(
        _("%(host)s rejects the credentials (status %(status)s). Update them in the settings of the target.")
    ),
    "no_room": Wording(_("%(host)s has no free space. Free space there, then export again.")),
    "too_large": Wording(_("%(host)s does not accept files of this size.")),
    "not_found": Wording(_("%(host)s has no such path (status %(status)s). Check the address and the options.")),
    "redirected": Wording(
        _(
            "%(host)s redirects to %(other)s, which is not followed. If this is correct, use it as the address "
            "of the target."
        )
    ),
    "answered": Wording(_("%(host)s responded with status %(status)s: %(error)s")),
    "clock": Wording(_("The clocks of %(host)s and the platform differ too much. An operator can set them.")),
    "region": Wording(
        _("The bucket does not exist at %(host)s, or is in another region. Check the endpoint and the region.")
    ),
    "sign_in": Wording(_("%(host)s rejects this username with this key or password.")),
    "host_key_changed": Wording(
        _(
            "%(host)s presents a different key than the pinned one. If the machine was reinstalled, reset the "
            "host key of the target and test it; otherwise the connection may be intercepted."
        )
    ),
    "host_key_unknown": Wording(_("The host key of %(host)s is unknown. Test the target first.")),
    "not_writable": Wording(_("The account cannot write to the folder at %(host)s.")),
    "no_folder": Wording(_("The folder does not exist at %(host)s and cannot be created.")),
    "checksum": Wording(_("The file at %(host)s differs from the sent file. Do not use it.")),
    "sealed": Wording(_("The secret of the target cannot be decrypted any more. Enter it again.")),
    "version_gone": Wording(_("The version was deleted, or some of its files are missing.")),
    "version_not_shared": Wording(_("The version is not shared with the user who pushed it any more.")),
    "target_gone": Wording(_("The target was deleted, or is not shared with the user who pushed any more.")),
    "gave_up": Wording(_("Failed after %(count)s attempts. Last error: %(why)s"), why=wording.nested("why")),
    "died": Wording(_("Every process that sent it was terminated. It was tried %(count)s times.")),
    "broke": Wording(_("Internal error while sending: %(error)s. An operator finds details in the log.")),
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
