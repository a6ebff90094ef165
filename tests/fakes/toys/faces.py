"""Pages, API and search of toys."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models.functions import Lower
from django.urls import include, path
from rest_framework.routers import SimpleRouter

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform import urls as site
from aiplatform.lib import search
from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Choice, Mine, ObjectFilters, Words
from aiplatform.objects.pages import ObjectPages, action
from aiplatform.objects.tables import Column, Facts, MainColumn, Table
from aiplatform.objects.viewsets import (
    ChangeObject,
    CreateObject,
    DeleteObject,
    ObjectSerializer,
    ObjectViewSet,
    object_action,
)
from tests.fakes.toys.models import Toy, change, create


class ToyFilters(ObjectFilters):
    search = Words("name", label="Name")
    visibility = Choice("visibility", Toy.Visibility.choices, label="Visible to")
    mine = Mine()
    orders = Ordering("-created", created="pk", name=Lower("name"))


class ToyForm(forms.ModelForm):
    class Meta:
        model = Toy
        fields = ("name", "wheels", "visibility")


class ToyPages(ObjectPages[Toy]):
    """Pages of toys."""

    model, form_class, filters = Toy, ToyForm, ToyFilters
    namespace = region = "toys"
    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    table = Table(
        MainColumn("Name", sort="name"), Column("Wheels", "row.wheels|count", kind="num"), Column("Owner", "row.owner")
    )
    facts = Facts(Column("Wheels", "row.wheels|count"), Column("Visible to", "row.get_visibility_display"))
    title, lead, new_title, save_label = "Toys", "Things to play with.", "New toy", "Save"
    filter_label, empty_text, no_match_text = "Filter toys", "No toys yet.", "No toy matches."
    delete_title, delete_goes, deleted_text = "Delete this toy", "The toy is deleted.", "Toy %(name)s is deleted."

    def create(self, request: SignedInRequest, form: ToyForm) -> Toy:
        return create(user=request.user, **form.cleaned_data)

    def change(self, request: SignedInRequest, form: ToyForm, row: Toy) -> None:
        change(row, **form.cleaned_data)

    def remove(self, request: SignedInRequest, row: Toy) -> None:
        row.delete()

    @action()
    def take_off(self, request: SignedInRequest, row: Toy) -> None:
        """Take all wheels off."""
        change(row, wheels=0)


class ToySerializer(ObjectSerializer):
    writable = ("name", "wheels", "visibility")

    class Meta:
        model = Toy
        fields = ("id", "name", "owner", "wheels", "visibility", "created_at")


class ToyViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """Toys of the caller, and public ones."""

    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    serializer_class, filters = ToySerializer, ToyFilters

    def create_object(self, **values: Any) -> Toy:
        return create(user=self.request.user, **values)

    def change_object(self, toy: Toy, **values: Any) -> None:
        change(toy, **values)

    def delete_object(self, toy: Toy) -> None:
        toy.delete()

    @object_action()
    def take_off(self, toy: Toy) -> None:
        """Take all wheels off."""
        change(toy, wheels=0)


SOURCE = search.Source("toy", "Toy", "star", Action.JOBS_VIEW, search.in_rows(Toy, "name", "toys:detail"))
handler400, handler403, handler404, handler500 = site.handler400, site.handler403, site.handler404, site.handler500
router = SimpleRouter()
router.register("toys", ToyViewSet, "api-toy")
urlpatterns = [
    path("toys/", include((ToyPages.urls(), "toys"))),
    path("api/v1/", include(router.urls)),
    *site.urlpatterns,
]
