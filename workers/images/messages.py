"""The texts of messages about images that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

IMAGE = {
    "build_failed": _("Job %(job)s, which built the image, failed. See its log."),
    "build_incomplete": _("Job %(job)s, which built the image, left no complete engine. Build it again."),
    "not_built": Wording(_("The image %(name)s is not built: %(why)s"), why=wording.nested),
    "being_built": _("The image %(name)s is being built."),
    "build_too_long": _("The image %(name)s was not ready after %(seconds)s s. Restore this job when it is built."),
    "gone": _("The image %(name)s was deleted. Start a new job with another image."),
    "not_yours": _("The owner can no longer access image %(name)s. Choose another one."),
    "old_driver": _(
        "The driver of %(node)s, %(driver)s, is too old for CUDA %(cuda)s of the image. Choose another one."
    ),
    "other_processor": _("The image was built for %(needed)s CPUs, %(node)s has %(there)s. Choose another one."),
    "elsewhere": _(
        "Node %(node)s stores its packages, but the job was placed on %(other)s. Restore it when that node "
        "has free resources, or start a new job from a saved image."
    ),
    "no_python": _(
        "Node %(node)s does not have the Python that the image %(name)s was built with: %(path)s. Build it again."
    ),
    "in_container": _("Node %(node)s runs jobs in containers with their own programs. Start the job without an image."),
    "needs_container": _(
        "The image %(name)s requires a container, and node %(node)s has isolation tier %(tier)s. Restore "
        "the job when a node with tier 4 has room."
    ),
    "not_ready": _("The image %(name)s has not been found yet. Resolve it again on its page."),
    "not_on_machine": _("The container image %(name)s is not on node %(node)s. Ask an operator to load it there."),
    "not_fetched": Wording(_("The image %(name)s could not be downloaded: %(why)s"), why=wording.nested),
    "on_its_way": _("The image %(name)s is being downloaded."),
    "fetch_gave_up": _("The download was interrupted %(count)s times. Restore the job to try again."),
    "fetch_unwanted": _("No job waits for the image any more. It is downloaded when a job needs it."),
    "fetch_machine_gone": _(
        "The node was removed or has been unreachable for a long time. The image is downloaded again when "
        "a job needs it."
    ),
    "blob_broken": _(
        "A damaged part of the image was removed from the platform folder. Restore the job to download it again."
    ),
    "look_failed": _("The image could not be resolved: %(error)s"),
    "load_failed": _("The container engine rejected the image: %(error)s"),
    "no_engine_here": _("Node %(node)s does not support containers any more. Ask an operator."),
    "registry_bad_ca": _(
        "The certificate authority of %(host)s is not a PEM certificate. Paste the complete certificate."
    ),
    "registry_checksum": _(
        "%(host)s returned unexpected data instead of %(what)s. Try again, or ask the operator of the registry."
    ),
    "registry_credentials": _("%(host)s does not accept these credentials, or they do not permit reading this image."),
    "registry_sign_in": _(
        "%(host)s requires credentials, or does not have the image. Add credentials and select them."
    ),
    "registry_not_found": _("%(host)s has no image %(what)s. Check its name and its tag."),
    "registry_too_many": _("%(host)s limits requests. Wait, or sign in there with credentials."),
    "registry_answered": _("%(host)s does not respond like a registry (%(status)s). Check its name."),
    "registry_insecure": _("%(host)s redirects to an address without HTTPS, which is not followed."),
    "registry_silent": _("%(host)s does not respond: %(error)s"),
    "registry_slow": _("%(host)s responds too slowly. Try again later, or use another registry."),
    "registry_stranger": _(
        "%(host)s redirects to %(other)s, which requires credentials; the given ones are only for "
        "%(host)s. Ask the operator of the registry."
    ),
    "registry_not_allowed": _("%(host)s is not an allowed registry. Ask an operator."),
    "registry_unknown": _("Host %(host)s not found. Check the name of the registry."),
    "registry_inner": _(
        "%(host)s is an internal address. An operator can allow it by its full name in AIP_REGISTRIES."
    ),
    "registry_certificate": _(
        "The certificate of %(host)s is not valid: %(error)s. Add its certificate authority to the credentials."
    ),
    "registry_sealed": _(
        "The credentials for %(host)s were encrypted with a different secret key. Enter the password again."
    ),
    "registry_withdrawn": _(
        "The credentials for %(host)s of this image are not shared with its owner any more. Request them "
        "again, or add the image again with other credentials."
    ),
    "registry_deleted": _(
        "The credentials for %(host)s of this image were deleted. Resolve it again if it is public, "
        "otherwise add it again with other credentials."
    ),
    "registry_joined": _(
        "The credentials for %(host)s can be decrypted only on the server, which fetches such images for "
        "node %(node)s. Restore the job; if that does not help, ask an operator whether the server is "
        "running."
    ),
    "registry_no_linux": _("%(host)s does not have this image for Linux."),
    "registry_no_image": _("%(host)s has this name, but it is not a container image that can run."),
    "registry_other_machines": _("%(host)s has this image only for %(names)s; this node is %(own)s."),
    "no_layers": _(
        "Node %(node)s cannot mount a saved image over its engine: this requires bubblewrap 0.11 and "
        "isolation tier 2 or 3. Ask an operator, or use the engine itself."
    ),
    "no_box_here": _(
        "The package folder of jobs on node %(node)s, %(path)s, does not support extended attributes. Ask "
        "an operator to set AIP_BOX_ROOT to a local disk."
    ),
    "closed_unknown": _(
        "The files of node %(node)s that are closed to other users could not be determined, so its folders "
        "are not mounted: %(error)s. Start the job again; if that does not help, ask an operator."
    ),
    "layer_broken": Wording(_("The saved image %(name)s cannot be unpacked: %(why)s"), why=wording.nested),
    "box_in_use": _("The packages are being saved. The job starts afterwards."),
    "box_too_large": Wording(
        _("The packages take %(mib)s; at most %(limit_mib)s can be saved. Remove some packages, then save again."),
        mib=wording.memory,
        limit_mib=wording.memory,
    ),
    "engine_full": Wording(
        _(
            "The container engine of node %(node)s has not enough space: %(mib)s must be free on the disk of "
            "%(path)s. Ask an operator."
        ),
        mib=wording.memory,
    ),
    "save_failed": _("The image could not be saved: %(error)s"),
    "export_incomplete": _(
        "The container engine returned an incomplete image. Save it again; if that does not help, ask an "
        "operator for the log of the engine."
    ),
    "save_gave_up": _("Saving was interrupted %(count)s times. Save it again."),
    "no_rest": _("The processes did not stop within %(seconds)s s. Save again, or stop the job first."),
    "not_still": _(
        "The processes continued while they were being saved, so no image was created. Stop the job, then "
        "save it again."
    ),
    "machine_away": _(
        "Node %(node)s stores the packages and does not respond. Save again when the node is back, or delete the image."
    ),
    "box_gone": _("The packages do not exist on node %(node)s any more."),
    "box_lost": _(
        "The packages do not exist on node %(node)s any more; backups do not include them. Discard them on "
        "the job page to start from the image."
    ),
    "layer_checksum": _("The checksum differs from the one recorded when the image was saved."),
    "layer_name": _("“%(path)s” is not a valid name in a layer."),
    "layer_link": _("“%(path)s” passes through a link or leaves the layer."),
    "layer_special": _("“%(path)s” is a device or another special file."),
    "layer_setuid": _("“%(path)s” would run with the permissions of another user."),
    "layer_bomb": _("The image is larger than recorded when it was saved."),
    "layer_torn": _("The image is damaged: %(error)s"),
}

#: What people do to images, for the audit trail.
VERBS = {
    "image_built": _("requested the image"),
    "image_saved": _("saved the image"),
    "image_deleted": _("deleted the image"),
    "image_added": _("added the container image"),
    "registry_login_added": _("added registry credentials"),
    "registry_login_changed": _("changed registry credentials"),
    "registry_login_deleted": _("deleted registry credentials"),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("image", IMAGE)
