"""The texts of messages about services and evaluations that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, labelled
from inference.monitoring.words import COMPARED, LOOKS

SERVICE = {
    "drifted": Wording(_("What %(service)s is shown has changed")),
    "drifted_by": Wording(
        _(
            "%(what)s of the last %(images)s pictures differs much from the images that its model learned from (index "
            "%(value)s). Look whether its answers still hold, and annotate some of them."
        ),
        what=labelled("what", lambda code: COMPARED.get(code, code)),
    ),
    "looks_drifted": Wording(
        _(
            "The last %(images)s pictures look different from those that its model learned from: %(apart)s standard "
            "deviations apart, where only 1 of 100 equal samples is more than %(allowed)s apart. Most of it is: "
            "%(what)s. Look whether its answers still hold, and annotate some of the pictures."
        ),
        what=labelled("what", lambda code: LOOKS.get(code, code)),
    ),
    "deleted": Wording(_("This service was deleted.")),
    "parted_crash": Wording(
        _("%(service)s left the process that it shared: %(model)s was at work when that crashed twice in a row.")
    ),
    "parted_load": Wording(_("%(service)s left the process that it shared: %(model)s could not be loaded there.")),
    "model_deleted": Wording(_("The model of this service was deleted.")),
    "model_not_shared": Wording(_("The model of this service is no longer shared with its owner.")),
}
TRIAL = {
    "withdrawn": Wording(_("Its version was deleted, or is no longer shared with the owner of the service.")),
    "service_ended": Wording(_("The service itself ended.")),
    "server_ended": Wording(_("Its server ended. The log of its job says why.")),
    "fails": Wording(_("%(failed)s of its %(requests)s requests failed.")),
    "fails_more": Wording(
        _(
            "%(failed)s of its %(requests)s requests failed, and %(beside_failed)s of the %(beside_requests)s "
            "of the other one."
        )
    ),
}
CONVERSION = {"gone": Wording(_("The model or the dataset of this conversion was deleted."))}
EVALUATION = {"gone": Wording(_("The model or the dataset of this evaluation was deleted."))}
OWN_SCRIPT = {
    "no_figures": Wording(
        _("The script wrote no %(name)s. Let it write one, names and their numbers, into the folder in AIP_OUTPUT_DIR.")
    ),
    "too_large": Wording(_("%(name)s is larger than %(most)s KiB. Write figures alone.")),
    "no_json": Wording(_("%(name)s is no JSON: %(error)s Write it with json.dump.")),
    "no_table": Wording(_("%(name)s must be one object of JSON with names and their numbers.")),
    "empty": Wording(_("%(name)s holds no figure. Write at least one name with a number.")),
    "too_many": Wording(_("There are %(count)s figures, more than %(most)s. Leave some out.")),
    "odd_name": Wording(_("“%(name)s” is no name of a figure: use 1 to %(most)s printable characters.")),
    "no_number": Wording(_("%(name)s is %(value)s, which is no finite number. Leave it out, or write a number.")),
    "too_deep": Wording(_("%(name)s holds more than a number. Figures are nested one level at most.")),
    "twice": Wording(_("%(name)s is written twice. Give each figure its own name.")),
    "more": Wording(ngettext_lazy("And %(count)s more problem.", "And %(count)s more problems.", "count")),
    "failed": Wording(_("%(file)s ended with exit code %(code)s. Its console says why; mend it and run again.")),
}

_REFUSALS = {
    "needs_another_person": _("another person must approve it"),
    "version_archived": _("the version is archived"),
    "wrong_stage": _("there is no way from its stage to approved"),
}
PROMOTION = {
    "given": Wording(_("Promoted: %(metric)s is %(value)s, asked was %(bound)s.")),
    "missed": Wording(_("Not promoted: %(metric)s is %(value)s, at least %(bound)s is asked.")),
    "exceeded": Wording(_("Not promoted: %(metric)s is %(value)s, at most %(bound)s is asked.")),
    "not_better": Wording(_("Not promoted: %(metric)s is %(value)s, and %(than)s, which is %(alias)s, has %(other)s.")),
    "not_measured": Wording(
        _("Not promoted: %(than)s, which is %(alias)s, was not evaluated on the same data. Evaluate it first.")
    ),
    "is_it": Wording(_("Not promoted: %(than)s is %(alias)s already.")),
    "no_figure": Wording(_("Not promoted: the evaluation has no figure %(metric)s.")),
    "incomplete": Wording(_("Not promoted: not all images were judged.")),
    "own_script": Wording(
        _("Not promoted: a rule approves by an own script only where whoever made the rule began the evaluation.")
    ),
    "author": Wording(_("Not promoted: who made the rule may no longer edit the model. Make it anew.")),
    "owner": Wording(_("Not promoted: who ran the evaluation may not edit the model.")),
    "refused": Wording(_("Not promoted: %(why)s."), why=labelled("code", lambda code: _REFUSALS.get(code, code))),
}

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

PREDICTION = {
    "gone": Wording(_("The model or the dataset of this prediction was deleted.")),
    "draft": Wording(_("First draft by the model %(model)s, prediction %(name)s")),
}

_WAY_WORDS = {"in": _("in"), "out": _("out")}

VIDEO = {
    "crossed": Wording(
        _("%(class)s %(object)s crossed %(place)s (%(way)s)."),
        way=labelled("way", lambda way: _WAY_WORDS.get(way, way)),
    ),
    "entered": Wording(_("%(class)s %(object)s entered %(place)s.")),
    "left": Wording(_("%(class)s %(object)s left %(place)s after %(seconds)s s.")),
    "loitered": Wording(_("%(class)s %(object)s is in %(place)s for %(seconds)s s.")),
    "frozen": Wording(_("The camera shows the same picture for %(seconds)s s.")),
    "black": Wording(_("The camera shows only black for %(seconds)s s.")),
    "over": Wording(_("The camera shows new pictures again, after %(seconds)s s.")),
    "hangs": Wording(_("A camera of %(name)s shows nothing new")),
    "gone": Wording(_("The model or the video of this analysis was deleted.")),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("service", SERVICE)
    wording.register("evaluation", EVALUATION)
    wording.register("own_script", OWN_SCRIPT)
    wording.register("trial", TRIAL)
    wording.register("conversion", CONVERSION)
    wording.register("video", VIDEO)
    wording.register("prediction", PREDICTION)
    wording.register("promotion", PROMOTION)
    wording.register("model_task", MODEL_TASK)
