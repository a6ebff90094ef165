"""What is done with the outputs of a job."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from training.runs import output_datasets
from training.runs.output_panel import OutputDatasetForm
from workers.core import kinds
from workers.core.models import Job


@needs(Action.DATASETS_CREATE)
@require_POST
def dataset(request: SignedInRequest, job: int) -> HttpResponse:
    """Import the outputs of a job as a new dataset; shows the progress."""
    row: Job = get_object_or_404(Job.objects.visible_to(request.user), pk=job)
    form = OutputDatasetForm(request.POST)
    fields = form.cleaned_data if form.is_valid() else {}
    with errors_as_messages(request):
        data_import = output_datasets.make(row, by=request.user, **fields)
        return redirect("datasets:import", data_import.dataset_id, data_import.pk)
    return redirect(f"{kinds.url_of(row)}?tab=files")
