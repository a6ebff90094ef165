"""The texts of messages about pushes that rows keep as code and facts, and the acts of the audit trail."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

TEXTS = {
    "inner": Wording(_("%(host)s lies inside this network. An operator can allow it with AIP_PUSH_ALLOWED.")),
    "insecure": Wording(_("%(host)s is asked without encryption. Use https://; http:// is for allowed hosts inside.")),
    "unknown": Wording(_("%(host)s is not found. Check the address.")),
    "silent": Wording(_("%(host)s does not answer: %(error)s")),
    "certificate": Wording(
        _("The certificate of %(host)s is not trusted: %(error)s. Give the authority that made it.")
    ),
    "bad_ca": Wording(_("The certificate authority of the target is no certificate in PEM.")),
    "credentials": Wording(
        _("%(host)s does not take the credentials (status %(status)s). Give new ones in the target's settings.")
    ),
    "no_room": Wording(_("%(host)s has no room left. Make room there, then push again.")),
    "too_large": Wording(_("%(host)s does not take files of this size.")),
    "not_found": Wording(_("%(host)s has no such place (status %(status)s). Check the address and the options.")),
    "redirected": Wording(
        _("%(host)s leads to %(other)s, which is not followed. If that is right, make it the address of the target.")
    ),
    "answered": Wording(_("%(host)s answered with status %(status)s: %(error)s")),
    "clock": Wording(_("The clock of %(host)s and that of the platform differ too much. An operator can set them.")),
    "region": Wording(_("The bucket is not at %(host)s, or in another region. Check the endpoint and the region.")),
    "sign_in": Wording(_("%(host)s does not take this username with this key or password.")),
    "host_key_changed": Wording(
        _(
            "%(host)s shows another key than the one that was pinned. If the machine was set up anew, forget the host "
            "key of the target and test it; else somebody may stand in between."
        )
    ),
    "host_key_unknown": Wording(_("The key of %(host)s is not known yet. Test the target first.")),
    "not_writable": Wording(_("The account may not write to the folder at %(host)s.")),
    "no_folder": Wording(_("The folder is not there at %(host)s, and cannot be made.")),
    "checksum": Wording(_("What arrived at %(host)s is not what was sent. Do not use the file there.")),
    "sealed": Wording(_("The secret of the target cannot be read any more. Give it once more.")),
    "version_gone": Wording(_("The version was deleted, or some of its files are gone.")),
    "version_not_shared": Wording(_("The version is no longer shared with the person who pushed it.")),
    "target_gone": Wording(_("The target was deleted, or is no longer shared with the person who pushed.")),
    "gave_up": Wording(_("It was tried %(count)s times. The last time: %(why)s"), why=wording.nested("why")),
    "died": Wording(_("Each process that sent it ended before it was done. It was tried %(count)s times.")),
    "broke": Wording(_("The platform failed while it sent: %(error)s. An operator finds more in the log.")),
}
VERBS = {
    "push_target_made": _("made the push target"),
    "push_target_changed": _("changed the push target"),
    "push_target_deleted": _("deleted the push target"),
    "push_host_key_forgotten": _("forgot the host key of the push target"),
    "model_pushed": _("pushed a version of"),
}
#: What the facts of these acts are called, for people.
FACTS = {"to": _("to")}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("push", TEXTS)
