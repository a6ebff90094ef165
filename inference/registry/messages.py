"""Texts of messages about jobs for a model that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Wording

MODEL_TASK = {
    "model_gone": Wording(_("The model that it was to be a version of was deleted, or is no longer yours.")),
    "version_gone": Wording(_("The version was deleted before it could be measured.")),
    "import_gone": Wording(_("The files of this import are gone. Import the model again.")),
    "not_checked": Wording(
        _("The program that checks the files ended without a result. The log of the job shows why.")
    ),
    "archive_gone": Wording(_("The archive is gone. Bring the model in again.")),
    "no_images": Wording(_("None of the images could be shown to the model. The log of the job says why.")),
    "no_size": Wording(_("The archive holds a program. Say how large its input is (width and height) and try again.")),
    "unreadable": Wording(_("The archive cannot be read: %(error)s")),
    "not_only_weights": Wording(
        _("The archive holds more than weights (%(name)s). Save model.state_dict(), TorchScript or ONNX instead.")
    ),
    "damaged": Wording(_("This is no archive of torch, or it is damaged. Save it anew, or bring it in once more.")),
    "no_weights": Wording(_("There are no weights in the archive: no table of tensors.")),
    "does_not_run": Wording(_("The program of the archive does not take a picture of %(width)s×%(height)s: %(error)s")),
    "not_exported": Wording(_("The program of the archive cannot become ONNX: %(error)s")),
    "files_gone": Wording(_("The files of this trial are gone. Bring the model in again.")),
    "data_gone": Wording(_("The dataset that the model was to be tried on is no longer there for you.")),
    "no_pictures": Wording(_("None of the pictures can be read. Try the model on others, as JPEG or PNG.")),
    "not_opened": Wording(_("ONNX Runtime cannot open the model: %(error)s Export it anew, for another opset.")),
    "too_long": Wording(
        _("The model did not answer within %(seconds)s s. Try it on one small picture, or export a smaller model.")
    ),
    "nothing_works": Wording(
        _(
            "In no way did it find anything that makes sense. Try pictures of what it was trained on, name its "
            "classes, or say how large its input is; a model whose head is not decoded must be exported anew."
        )
    ),
    "not_rebuilt": Wording(_("The network cannot be built anew: %(error)s Train the model once more.")),
    "not_traced": Wording(_("torch.export does not take this network: %(error)s Use its ONNX file.")),
    "torch_differs": Wording(
        _("The program answers otherwise than the ONNX file, by %(largest)s, and was not kept. Use the ONNX file.")
    ),
    "no_shape": Wording(_("Nothing says how large the input %(name)s is. Describe the model with a model.json.")),
}
