"""The texts of messages about images that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

IMAGE = {
    "build_failed": Wording(_("Job %(job)s, which built it, did not succeed. Its log says why.")),
    "build_incomplete": Wording(_("Job %(job)s, which built it, left no complete engine. Build it again.")),
    "not_built": Wording(_("The image %(name)s is not built: %(why)s"), why=wording.nested("why")),
    "being_built": Wording(_("The image %(name)s is being built.")),
    "build_too_long": Wording(
        _("The image %(name)s was not ready after %(seconds)s s. Restore this job once it is built.")
    ),
    "gone": Wording(_("The image %(name)s was deleted. Start a new job with another one.")),
    "not_yours": Wording(_("The image %(name)s is no longer there for its owner. Choose another one.")),
    "old_driver": Wording(
        _("The driver of %(node)s, %(driver)s, is too old for CUDA %(cuda)s of the image. Choose another one.")
    ),
    "other_processor": Wording(
        _("The image was built for processors of kind %(needed)s, %(node)s has %(there)s. Choose another one.")
    ),
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
    "needs_container": Wording(
        _(
            "The image %(name)s runs in a container, and the machine %(node)s offers isolation tier "
            "%(tier)s. Restore it when a machine with tier 4 has room."
        )
    ),
    "not_ready": Wording(_("The image %(name)s was not found so far. Look it up again on its page.")),
    "not_on_machine": Wording(
        _("The container image %(name)s is not on the machine %(node)s. Ask an operator to load it there.")
    ),
    "not_fetched": Wording(_("The image %(name)s could not be fetched: %(why)s"), why=wording.nested("why")),
    "on_its_way": Wording(_("The image %(name)s is being fetched.")),
    "fetch_gave_up": Wording(_("Fetching it was interrupted %(count)s times. Restore the job to try again.")),
    "fetch_unwanted": Wording(_("No job waits for it any more. The next one that needs it has it fetched.")),
    "fetch_machine_gone": Wording(
        _("The machine is gone or has been silent for long. The next job there that needs it has it fetched.")
    ),
    "blob_broken": Wording(
        _("A part of it in the platform's folder was damaged and has been removed. Restore the job to fetch it again.")
    ),
    "look_failed": Wording(_("It could not be looked up: %(error)s")),
    "load_failed": Wording(_("The container engine did not take it: %(error)s")),
    "no_engine_here": Wording(_("The machine %(node)s no longer offers containers. Ask an operator.")),
    "registry_bad_ca": Wording(_("The certificate authority of %(host)s is no certificate in PEM. Paste it whole.")),
    "registry_checksum": Wording(_("%(host)s gave something else than %(what)s. Try again, or ask who keeps it.")),
    "registry_credentials": Wording(_("%(host)s does not take these credentials, or they may not read this image.")),
    "registry_sign_in": Wording(
        _("%(host)s wants credentials, or has no such image. Add credentials and choose them.")
    ),
    "registry_not_found": Wording(_("%(host)s has no image %(what)s. Look at its name and its tag.")),
    "registry_too_many": Wording(_("%(host)s was asked too often. Wait, or sign in there with credentials.")),
    "registry_answered": Wording(_("%(host)s answered as no registry does (%(status)s). Look at its name.")),
    "registry_insecure": Wording(_("%(host)s leads to an address without HTTPS, which is not followed.")),
    "registry_silent": Wording(_("%(host)s does not answer: %(error)s")),
    "registry_slow": Wording(_("%(host)s answers too slowly. Try again later, or use a registry that is nearer.")),
    "registry_stranger": Wording(
        _(
            "%(host)s leads to %(other)s, which asks for credentials; they are for %(host)s alone. Ask who keeps that "
            "registry."
        )
    ),
    "registry_not_allowed": Wording(_("%(host)s is not among the registries that may be used here. Ask an operator.")),
    "registry_unknown": Wording(_("There is no machine called %(host)s. Look at the registry's name.")),
    "registry_inner": Wording(
        _("%(host)s is an address of an inner network. An operator may allow it by its whole name in AIP_REGISTRIES.")
    ),
    "registry_certificate": Wording(
        _("The certificate of %(host)s is not valid: %(error)s. Add its certificate authority to the credentials.")
    ),
    "registry_sealed": Wording(
        _("The credentials of %(host)s were kept under another secret key of the platform. Type the password again.")
    ),
    "registry_withdrawn": Wording(
        _(
            "The credentials of %(host)s that this image is fetched with are no longer shared with its owner. Ask for "
            "them again, or add the image once more with others."
        )
    ),
    "registry_deleted": Wording(
        _(
            "The credentials of %(host)s that it was fetched with were deleted. Look it up again if everybody may "
            "fetch it, else add it once more with others."
        )
    ),
    "registry_joined": Wording(
        _(
            "The credentials of %(host)s can be opened on the server alone, which fetches such images for the machine "
            "%(node)s. Restore the job; if that does not help, ask an operator whether the server runs."
        )
    ),
    "registry_no_linux": Wording(_("%(host)s has this image for no Linux machine.")),
    "registry_no_image": Wording(_("What %(host)s has under this name is no container image that can be run.")),
    "registry_other_machines": Wording(_("%(host)s has this image for %(names)s alone, and this machine is %(own)s.")),
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
    "closed_unknown": Wording(
        _(
            "It was not found out which files of the machine %(node)s are closed to others, so its folders are not "
            "opened: %(error)s. Start it again; if that does not help, ask an operator."
        )
    ),
    "layer_broken": Wording(_("The saved image %(name)s cannot be unpacked: %(why)s"), why=wording.nested("why")),
    "box_in_use": Wording(_("Its packages are just being saved. It starts when that is done.")),
    "box_too_large": Wording(
        _("Its packages take %(mib)s, and %(limit_mib)s are saved at most. Remove some, then save it again."),
        mib=wording.memory("mib"),
        limit_mib=wording.memory("limit_mib"),
    ),
    "engine_full": Wording(
        _(
            "The container engine of the machine %(node)s has no room for it: %(mib)s must be free where %(path)s "
            "lies. Ask an operator."
        ),
        mib=wording.memory("mib"),
    ),
    "save_failed": Wording(_("It could not be saved: %(error)s")),
    "export_incomplete": Wording(
        _(
            "The container engine gave only a part of the image. Save it again; if that does not help, ask an operator "
            "for the log of the engine."
        )
    ),
    "save_gave_up": Wording(_("It was interrupted %(count)s times while it was saved. Save it again.")),
    "no_rest": Wording(_("Its processes did not come to rest within %(seconds)s s. Save it again, or stop it first.")),
    "not_still": Wording(
        _("Its processes went on while they were saved, so nothing was kept. Stop the job, then save it again.")
    ),
    "machine_away": Wording(
        _(
            "Its packages lie on the machine %(node)s, which does not answer. Save it again when the machine is back, "
            "or delete it."
        )
    ),
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
    "image_added": _("added the container image"),
    "registry_login_added": _("added credentials of a registry"),
    "registry_login_changed": _("changed credentials of a registry"),
    "registry_login_deleted": _("deleted credentials of a registry"),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("image", IMAGE)
