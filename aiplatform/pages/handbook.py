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
         _("A zip or a folder, with labels or without. The report says what was found before it is kept."),
         "/datasets/", Action.DATASETS_VIEW),
    Step(_("Annotate"), _("Draw boxes or outlines where labels are missing; several people can share the work."),
         "/annotation/", Action.ANNOTATION_VIEW),
    Step(_("Train"), _("Choose a dataset and a preset. The queue finds a card; pause, finish or stop at any time."),
         "/training/", Action.TRAINING_VIEW),
    Step(_("Evaluate"), _("Measure the model on images it was not trained on, and look at its worst mistakes."),
         "/evaluations/", Action.EVALUATIONS_VIEW),
    Step(_("Serve"), _("The model answers at an address of its own: in the browser, by curl, from Python."),
         "/services/", Action.SERVICES_VIEW),
)  # fmt: skip

GLOSSARY: tuple[tuple[Any, tuple[Word, ...]], ...] = (
    (_("Data"), (
        Word("version", _("Dataset version"), _("Images and labels that never change; what a training pins.")),
        Word("split", _("Split"), _("A part of a version: train to learn from, val to choose by, test to judge by.")),
        Word("class", _("Class"), _("What an object or an image may be.")),
        Word("object", _("Object"), _("One thing drawn on an image; its outline is its shape.")),
        Word("import", _("Import"), _("Data becomes a version. Its report says what was found and what was left out.")),
        Word("project", _("Annotation project"), _("People, classes and images to draw on.")),
        Word("conversion", _("Conversion"), _("Annotations become a COCO file or a version.")),
    )),
    (_("Work"), (
        Word("job", _("Job"), _("One command the platform runs on devices, whatever it means.")),
        Word("training", _("Training"), _("A job that makes a model from a dataset version.")),
        Word("preset", _("Preset"), _("A ready-made training, readable and copied into the run.")),
        Word("own-code", _("Own code"), _("A folder of your own to train with.")),
        Word("home", _("Home folder"), _("A person's own files, the same in every environment of theirs.")),
        Word("parameter-set", _("Parameter set"), _("Parameters of a preset under a name.")),
        Word("checkpoint", _("Checkpoint"), _("What a job leaves on its way, to be restored from.")),
        Word("attempt", _("Attempt"), _("One try of a job; a restore or a preemption makes the next one.")),
        Word("pause", _("Pause"), _("Stops computing and keeps the cards; continue goes on at once.")),
        Word("finish", _("Finish early"), _("Ends well with what is learned so far; counts as completed.")),
        Word("restore", _("Restore"), _("A new attempt from a checkpoint, with what was remembered.")),
        Word("clone", _("Clone"), _("A new training with the same settings, from the beginning.")),
    )),
    (_("Models"), (
        Word("evaluation", _("Evaluation"), _("A job that measures a model on a dataset version.")),
        Word("figure", _("Figure"), _("A measured number, such as AP50 or accuracy; nearer to 1 is better.")),
        Word("ap50", "AP50", _("Average precision of boxes that overlap the drawn ones by half or more.")),
        Word("precision", _("Precision"), _("Of what the model said, the share that is right.")),
        Word("recall", _("Recall"), _("Of what is there, the share that the model found.")),
        Word("threshold", _("Threshold"), _("Answers with a lower score are not shown.")),
        Word("service", _("Service"), _("A job that answers requests with a model.")),
        Word("pipeline", _("Pipeline"), _("Steps from data to a model in use, drawn once and run again and again.")),
        Word("gate", _("Gate"), _("A step that goes on one way or the other by a rule over figures.")),
        Word("trigger", _("Trigger"), _("What begins runs of a pipeline by itself: the clock, new data, a webhook.")),
    )),
    (_("Machines"), (
        Word("machine", _("Machine"), _("A computer that runs jobs.")),
        Word("card", _("Card"), _("A GPU or another accelerator. Jobs may take an eighth of one or many.")),
        Word("cluster", _("Cluster"), _("People, and how much of the machines they may use.")),
        Word("queue", _("Queue"), _("Jobs that wait, each with its place and the reason.")),
        Word("room", _("Make room"), _("Give devices to more important work, and go on later.")),
        Word("borrowed", _("Borrowed cards"), _("Idle cards of other clusters; whoever owns them gets them back.")),
    )),
    (_("People"), (
        Word("role", _("Role"), _("What its holders may do.")),
        Word("group", _("Group"), _("People who share roles and data.")),
        Word("private", _("Private"), _("Seen by its owner and those it is shared with.")),
        Word("token", _("API token"), _("What scripts and the command line sign in with.")),
    )),
)  # fmt: skip

#: Keys that work on every page, and where more of them are listed.
KEYS: tuple[tuple[str, Any], ...] = (
    ("/", _("Go to the search")),
    ("?", _("In the annotator: all its keys")),
    ("Esc", _("Close a menu, a dialog or the side bar")),
    ("Tab", pgettext_lazy("key", "The next control; Enter on a column's head sorts")),
)

#: The oldest browsers that pages are made for.
BROWSERS = (("Chromium, Chrome, Edge", "120"), ("Firefox", "121"), ("Safari", "17.4"))
