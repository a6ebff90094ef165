"""Texts of messages about jobs for a model that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

MODEL_TASK = {
    "model_gone": _("The target model of this version was deleted, or you can no longer edit it."),
    "version_gone": _("The version was deleted before it could be measured."),
    "import_gone": _("The files of this import no longer exist. Import the model again."),
    "not_checked": _("The program that checks the files exited without a result. See the log of the job."),
    "archive_gone": _("The archive no longer exists. Import the model again."),
    "no_images": _("The model could not process any of the images. See the log of the job."),
    "no_size": _("The archive contains a program. Enter its input size (width and height) and try again."),
    "unreadable": _("The archive is invalid: %(error)s"),
    "not_only_weights": _(
        "The archive contains more than weights (%(name)s). Save model.state_dict(), TorchScript or ONNX instead."
    ),
    "damaged": _("Not a torch archive, or the file is damaged. Save it again, or import it again."),
    "no_weights": _("The archive contains no weights: no table of tensors."),
    "does_not_run": _("The program of the archive does not accept an image of %(width)s×%(height)s: %(error)s"),
    "not_exported": _("The program of the archive cannot be converted to ONNX: %(error)s"),
    "files_gone": _("The files of this test no longer exist. Import the model again."),
    "data_gone": _("You can no longer access the dataset for the trial run."),
    "no_pictures": _("None of the images can be read. Try other images, as JPEG or PNG."),
    "not_opened": _("ONNX Runtime cannot open the model: %(error)s Export it again for another opset."),
    "too_long": _(
        "The model did not respond within %(seconds)s s. Try it on one small image, or export a smaller model."
    ),
    "nothing_works": _(
        "No interpretation gave plausible predictions. Try images like those it was trained on, name its "
        "classes, or enter its input size; a model whose head is not decoded must be exported again."
    ),
    "not_rebuilt": _("The network cannot be rebuilt: %(error)s Train the model again."),
    "not_traced": _("torch.export does not support this network: %(error)s Use its ONNX file."),
    "torch_differs": _(
        "The predictions of the exported program differ from the ONNX file by %(largest)s, so it was not "
        "kept. Use the ONNX file."
    ),
    "no_shape": _("The size of the input %(name)s is not defined. Describe the model with a model.json."),
}
