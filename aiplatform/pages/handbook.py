"""Words and way of work, for the page of help; aiplatform/docs/glossary.md has the same words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.access.permissions import Action


@dataclass(frozen=True)
class Word:
    """One word of the glossary; `key` is its place in the page."""

    key: str
    word: Any
    meaning: Any


@dataclass(frozen=True)
class Step:
    """One step from images to a deployed model, and the page where permitted users do it."""

    label: Any
    description: Any
    path: str
    needs: Action


STEPS = (
    Step(_("Upload images"),
         _("A zip file or a folder, with or without labels. A report lists what was found before it is imported."),
         "/datasets/", Action.DATASETS_VIEW),
    Step(_("Annotate"), _("Draw boxes or polygons where labels are missing; several users can share the work."),
         "/annotation/", Action.ANNOTATION_VIEW),
    Step(_("Train"), _("Choose a dataset and a preset. The scheduler finds a GPU; pause, finish or stop at any time."),
         "/training/", Action.TRAINING_VIEW),
    Step(_("Evaluate"), _("Evaluate the model on images it was not trained on, and inspect its worst errors."),
         "/evaluations/", Action.EVALUATIONS_VIEW),
    Step(_("Deploy"), _("The model responds at its own address: in the browser, with curl, from Python."),
         "/services/", Action.SERVICES_VIEW),
)  # fmt: skip

GLOSSARY: tuple[tuple[Any, tuple[Word, ...]], ...] = (
    (_("Data"), (
        Word("version", _("Dataset version"), _("Immutable set of images and labels that a training job refers to.")),
        Word("split", _("Split"), _("A part of a version: train for training, val for model selection, test for "
                                    "evaluation.")),
        Word("class", _("Class"), _("Category of an object or an image.")),
        Word("object", _("Object"), _("An annotated item in an image; its outline is its shape.")),
        Word("import", _("Import"), _("Turns data into a version. Its report lists what was found and what was "
                                      "skipped.")),
        Word("project", _("Annotation project"), _("Users, classes and images to annotate.")),
        Word("conversion", _("Conversion"), _("Turns annotations into a COCO file or a version.")),
    )),
    (_("Work"), (
        Word("job", _("Job"), _("A program that the platform runs on devices.")),
        Word("training", _("Training"), _("A job that creates a model from a dataset version.")),
        Word("preset", _("Preset"), _("A ready-to-use training program, readable and copied into the run.")),
        Word("own-code", _("Custom code"), _("A folder of your own code for training.")),
        Word("home", _("Home folder"), _("Files of a user, the same in all workspaces of that user.")),
        Word("parameter-set", _("Parameter set"), _("Named parameters of a preset.")),
        Word("checkpoint", _("Checkpoint"), _("State that a job saves while running, to restore from.")),
        Word("attempt", _("Attempt"), _("One execution of a job; a restore or a preemption creates the next one.")),
        Word("pause", _("Pause"), _("Stops computing and keeps the GPUs; continue resumes immediately.")),
        Word("finish", _("Finish early"), _("Ends successfully with the current result; counts as completed.")),
        Word("restore", _("Restore"), _("A new attempt that continues from a checkpoint.")),
        Word("clone", _("Clone"), _("A new training job with the same settings.")),
    )),
    (_("Models"), (
        Word("evaluation", _("Evaluation"), _("A job that evaluates a model on a dataset version.")),
        Word("figure", _("Metric"), _("A measured number, such as AP50 or accuracy; closer to 1 is better.")),
        Word("ap50", "AP50", _("Average precision of boxes with an IoU of at least 0.50 with the ground truth.")),
        Word("precision", _("Precision"), _("Share of predictions that are correct.")),
        Word("recall", _("Recall"), _("Share of ground truth objects that the model found.")),
        Word("threshold", _("Threshold"), _("Predictions with a lower confidence are hidden.")),
        Word("service", _("Endpoint"), _("A job that responds to requests with a model.")),
        Word("pipeline", _("Pipeline"), _("Steps from data to a deployed model, run automatically.")),
        Word("gate", _("Gate"), _("A step that chooses one of two branches by a rule on metrics.")),
        Word("trigger", _("Trigger"), _("Starts runs of a pipeline automatically: schedule, new data, webhook.")),
    )),
    (_("Nodes"), (
        Word("machine", _("Node"), _("A computer that runs jobs.")),
        Word("card", _("GPU"), _("A GPU or another accelerator. Jobs can use an eighth of one, or many.")),
        Word("cluster", _("Cluster"), _("A group of users with limits on the resources they can use.")),
        Word("queue", _("Queue"), _("Waiting jobs, each with its position and the reason.")),
        Word("room", _("Preempt"), _("Release devices for more important jobs, and continue later.")),
        Word("borrowed", _("Borrowed GPUs"), _("Idle GPUs of other clusters; their owners can reclaim them.")),
    )),
    (_("Users"), (
        Word("role", _("Role"), _("A set of permissions.")),
        Word("group", _("Group"), _("Users who share roles and data.")),
        Word("private", _("Private"), _("Visible to its owner and to users it is shared with.")),
        Word("token", _("API token"), _("Credential of scripts and the command line.")),
    )),
)  # fmt: skip

#: Keys that work on every page, and where more of them are listed.
KEYS: tuple[tuple[str, Any], ...] = (
    ("/", _("Open search")),
    ("?", _("Annotator: show all shortcuts")),
    ("Esc", _("Close a menu, a dialog or the side bar")),
    ("Tab", pgettext_lazy("key", "Next control; Enter on a column header sorts")),
)

#: The oldest browsers that pages are made for.
BROWSERS = (("Chromium, Chrome, Edge", "120"), ("Firefox", "121"), ("Safari", "17.4"))
