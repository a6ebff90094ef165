"""Pages that show pictures: what a training would see, what it answered along the way, what its layers answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.numbers import finite
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, needs
from training.runs import checkpoints, drafts, previews
from training.runs import images as pictures
from training.runs.forms import OWN, SubmitForm
from training.runs.models import TrainingJob
from training.runs.views import shown, training_or_404

MAX_LAYERS = 400
MAX_CLASSES = 40
BROKEN = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading facts may end in: a job can write what it wants."""
SIZES = {  # of objects at the input, by the bound they are below
    8: gettext_lazy("below 8 px, unlikely to be detected"),
    16: gettext_lazy("8 to 16 px"),
    32: gettext_lazy("16 to 32 px"),
    96: gettext_lazy("32 to 96 px"),
    None: gettext_lazy("96 px and more"),
}


class LayersForm(forms.Form):
    """What to look into, and with which image."""

    checkpoint = forms.ChoiceField(label=gettext_lazy("Checkpoint"), required=False)
    image = forms.FileField(
        label=gettext_lazy("One of your images"),
        required=False,
        help_text=gettext_lazy("Default: three of the evaluation images."),
        widget=forms.FileInput(attrs={"accept": "image/*"}),
    )

    def __init__(self, *args: Any, rows: list[checkpoints.Checkpoint], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["checkpoint"].choices = [(row.name, checkpoints.label(row)) for row in rows]  # type: ignore[attr-defined]  # a field of choices, declared above


@needs(Action.TRAINING_SUBMIT)
@require_POST
def preview_new(request: SignedInRequest) -> HttpResponse:
    """Queue a preview of the form's training; htmx receives the part of the page that shows it."""
    form = SubmitForm(request.POST, request.FILES, user=request.user)
    if form.is_valid():
        if form.cleaned_data["preset"] == OWN:
            form.add_error("preset", gettext_lazy("Custom code cannot be previewed. Choose a preset."))
        else:
            with errors_shown_on(form):
                wanted = drafts.TrainingRequest(**form.request_fields())
                training = previews.preview(user=request.user, request=wanted)
                if request.htmx:
                    return render(request, "training/_preview.html", _preview_of(training) | {"training": training})
                return redirect("training:job-images", training.pk)
    else:
        check_valid_fields(form, drafts.check_parts)
    wrong = [(form.fields[name].label if name in form.fields else "", errors) for name, errors in form.errors.items()]
    return render(request, "training/_preview_refused.html", {"wrong": wrong}, status=422)


@needs(Action.TRAINING_VIEW)
@require_safe
def job_images(request: SignedInRequest, pk: int) -> HttpResponse:
    """The tab of pictures; htmx gets what is refreshed while the job is at work."""
    training = _of_preset(request, pk)
    mode = previews.mode_of(training)
    if mode == "profile":
        return redirect("training:job-metrics", pk)
    context: dict[str, Any] = {"mode": mode}
    if mode == "batch":
        context |= _preview_of(training)
    elif mode == "layers":
        context |= {"look": training} | _layers_of(training)
    else:
        look = previews.latest_layers(training, request.user)
        context |= {"strip": pictures.strip(training), "look": look} | (_layers_of(look) if look else {})
    if request.htmx:
        part = "training/_preview.html" if mode == "batch" else "training/_pictures.html"
        return render(request, part, {"training": training, "job": training.job, **context})
    rows = checkpoints.valid(training) if not mode else []
    return shown(request, training, "job-images", **context, layers_form=LayersForm(rows=rows) if rows else None)


@needs(Action.TRAINING_SUBMIT)
@require_POST
def job_layers(request: SignedInRequest, pk: int) -> HttpResponse:
    """Queue a look into the layers; its results appear on the tab of pictures."""
    training = _of_preset(request, pk)
    form = LayersForm(request.POST, request.FILES, rows=checkpoints.valid(training))
    form.is_valid()  # a checkpoint that is gone is refused by the service
    with errors_as_messages(request):
        previews.layers(
            training, by=request.user, checkpoint=request.POST.get("checkpoint", "")[:60],
            image=form.files.get("image"),
        )  # fmt: skip
    return redirect("training:job-images", pk)


def _of_preset(request: SignedInRequest, pk: int) -> TrainingJob:
    """A training of a preset; own code leaves no such pictures."""
    training = training_or_404(request, pk)
    if not training.preset:
        raise Http404
    return training


def _preview_of(training: TrainingJob) -> dict[str, Any]:
    """Return the results of a batch preview so far."""
    attempt, facts = pictures.facts(training, "preview")
    if not attempt:
        return {"about": None}
    try:
        return {"about": _preview_facts(training, facts), "attempt": attempt}
    except BROKEN:
        return {"about": None}


def _preview_facts(training: TrainingJob, facts: dict[str, Any]) -> dict[str, Any]:
    classes = [(str(entry["name"])[:80], int(entry["count"])) for entry in facts["classes"]]
    largest_count = max((count for _name, count in classes), default=0) or 1
    bars = [{"name": name, "count": count, "share": count / largest_count} for name, count in classes[:MAX_CLASSES]]
    epoch_s, minutes = finite(facts.get("epoch_s")), finite(training.params.get("budget_minutes"))
    sizes = list(_sizes(facts.get("sizes") or []))
    return {
        "counted": facts.get("counted"),
        "classes": bars,
        "more_classes": max(len(classes) - MAX_CLASSES, 0),
        "learn": int(facts["images"]["learn"]),
        "score": int(facts["images"]["score"]),
        "input": _size(facts.get("input")),
        "window": _size(facts.get("window")),
        "originals": {name: _size(size) for name, size in (facts.get("originals") or {}).items()},
        "lost": int(facts.get("lost") or 0),
        "objects": int(facts.get("objects") or 0),
        "sizes": sizes,
        "batch_size": int(facts["batch_size"]),
        "steps_per_epoch": int(facts["steps_per_epoch"]),
        "steps_timed": int(facts.get("steps_timed") or 0),
        "step_ms": finite(facts.get("step_ms")),
        "epoch_s": epoch_s,
        "passes": 60 * minutes / epoch_s if minutes and epoch_s else None,
        "minutes": minutes,
        "memory_bytes": int(facts.get("memory_mib") or 0) << 20,
        "prepared_s": finite(facts.get("prepared_s")),
        "network": _network(facts.get("network")),
        "pictures": [f"preview/batch-{number}.jpg" for number in range(1, min(int(facts["pictures"]), 24) + 1)],
        "unvaried": [f"preview/score-{number}.jpg" for number in range(1, min(int(facts["images"]["score"]), 6) + 1)],
    }


def _network(network: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the layers of the network, first to last; None if they were not recorded."""
    if not network:
        return None
    layers = [
        {
            "name": str(layer["name"])[:200],
            "kind": str(layer["kind"])[:80],
            "answer": " × ".join(str(int(side)) for side in layer["answer"][:8]),
            "weights": int(layer["weights"]),
        }
        for layer in network["layers"][:MAX_LAYERS]
    ]
    return {"layers": layers, "weights": int(network["weights"]), "of_layers": int(network["of_layers"])}


def _sizes(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    largest_count = max((int(row["count"]) for row in rows), default=0)
    for row in rows:
        if row["below"] in SIZES:
            share = int(row["count"]) / largest_count if largest_count else 0.0
            yield {"name": SIZES[row["below"]], "count": int(row["count"]), "share": share}


def _size(value: Any) -> str:
    """Width and height as people write them, "" where there are none."""
    return f"{int(value[0])} × {int(value[1])}" if value else ""


def _layers_of(look: TrainingJob) -> dict[str, Any]:
    """Return the results of a layer inspection so far."""
    attempt, content = pictures.facts(look, "layers")
    try:
        images = list(range(1, min(len(content["images"]), 12) + 1)) if attempt else []
        layers = [_layer(layer, images) for layer in content["layers"][:60]] if attempt else []
        cams = {int(cam["image"]): cam for cam in content["cams"]} if attempt else {}
        shown_images = [
            {
                "number": number,
                "name": str(content["images"][number - 1].get("name", ""))[:200],
                "picture": f"layers/image-{number}.jpg",
                "cam": f"layers/cam-{number}.jpg" if number in cams else "",
                "class": str(cams[number]["class"])[:80] if number in cams else "",
                "score": finite(cams[number]["score"]) if number in cams else None,
            }
            for number in images
        ]
    except BROKEN:
        return {"layers": None}
    if not attempt:
        return {"layers": None}
    facts = {"step": int(content.get("step") or 0), "of_layers": int(content.get("of_layers") or 0)}
    return {"layers": layers, "look_images": shown_images, "look_attempt": attempt, **facts}


def _layer(layer: dict[str, Any], images: list[int]) -> dict[str, Any]:
    number, weights, shape = int(layer["number"]), layer["weights"], layer["shape"]
    largest_count = max((int(count) for count in weights["bins"]), default=0) or 1
    spatial = len(shape) == 3
    return {
        "number": number,
        "name": str(layer["name"])[:100],
        "kind": str(layer["kind"])[:20],
        "shape": " × ".join(str(int(side)) for side in shape),
        "weights_shape": " × ".join(str(int(side)) for side in weights["shape"]),
        "mean": finite(weights["mean"]),
        "std": finite(weights["std"]),
        "from": finite(weights["from"]),
        "to": finite(weights["to"]),
        "bars": [{"x": 4 * index, "h": 30 * int(n) / largest_count, "y": 30 - 30 * int(n) / largest_count}
                 for index, n in enumerate(weights["bins"][:60])],
        "pictures": [f"layers/{number:02d}-{image}.jpg" for image in images] if spatial else [],
        "kernels": f"layers/{number:02d}-weights.jpg" if weights.get("picture") else "",
    }  # fmt: skip
