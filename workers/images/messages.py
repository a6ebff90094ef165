"""The texts of messages about images that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

IMAGE = {
    "build_failed": Wording(_("Job %(job)s, which built it, did not succeed. Its log says why.")),
    "build_incomplete": Wording(_("Job %(job)s, which built it, left no complete engine. Build it again.")),
    "not_built": Wording(_("The image %(name)s is not built: %(why)s"), why=wording.nested("why")),
    "build_too_long": Wording(
        _("The image %(name)s was not ready after %(seconds)s s. Restore this job once it is built.")
    ),
    "gone": Wording(_("The image %(name)s was deleted. Start a new job with another one.")),
    "not_yours": Wording(_("The image %(name)s is no longer there for its owner. Choose another one.")),
    "elsewhere": Wording(
        _(
            "Its packages lie on the machine %(node)s, and it was placed on %(other)s. Restore it when that machine "
            "has room, or begin a new one from a saved image."
        )
    ),
    "no_python": Wording(
        _("The machine %(node)s lacks the Python that the image %(name)s was built with: %(path)s. Build it again.")
    ),
    "in_container": Wording(
        _("The machine %(node)s runs jobs in containers, which bring their own programs. Start it without an image.")
    ),
    "no_layers": Wording(
        _(
            "The machine %(node)s cannot lay a saved image over its engine: that takes bubblewrap 0.11 and isolation "
            "tier 2 or 3. Ask an operator, or use the engine itself."
        )
    ),
    "no_box_here": Wording(
        _(
            "The folder for packages of jobs on the machine %(node)s, %(path)s, takes no extended attributes. Ask an "
            "operator to set AIP_BOX_ROOT to a local disk."
        )
    ),
    "layer_broken": Wording(_("The saved image %(name)s cannot be unpacked: %(why)s"), why=wording.nested("why")),
    "box_in_use": Wording(_("Its packages are just being saved. It starts when that is done.")),
    "save_failed": Wording(_("It could not be saved: %(error)s")),
    "save_gave_up": Wording(_("It was interrupted %(count)s times while it was saved. Save it again.")),
    "no_rest": Wording(_("Its processes did not come to rest within %(seconds)s s. Save it again, or stop it first.")),
    "box_gone": Wording(_("Its packages are no longer on the machine %(node)s.")),
    "box_lost": Wording(
        _(
            "Its packages are no longer on the machine %(node)s; a backup does not keep them. Forget them on its page "
            "to begin from the image again."
        )
    ),
    "layer_checksum": Wording(_("Its checksum is not the one that was noted when it was saved.")),
    "layer_name": Wording(_("“%(path)s” is no name that a layer may have.")),
    "layer_link": Wording(_("“%(path)s” leads through a link or out of the layer.")),
    "layer_special": Wording(_("“%(path)s” is a device or another special file.")),
    "layer_setuid": Wording(_("“%(path)s” would run with rights of somebody else.")),
    "layer_bomb": Wording(_("It is larger than what was noted when it was saved.")),
    "layer_torn": Wording(_("It is damaged: %(error)s")),
}

#: What people do to images, for the audit trail.
VERBS = {
    "image_built": _("asked for the image"),
    "image_saved": _("saved the image"),
    "image_deleted": _("deleted the image"),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("image", IMAGE)
