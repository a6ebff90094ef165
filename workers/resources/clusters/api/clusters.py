"""`/api/v1/clusters/`: virtual clusters, their bounds and members."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib import queries, search
from aiplatform.lib.api import NumberedViewSet, OldestFirstPagination, parse_request
from aiplatform.lib.idempotency import once
from workers.core.models import VirtualCluster
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import bounds, cluster_use, clusters, members, quotas
from workers.resources.clusters.api.serializers import (
    BoundsSerializer,
    ClusterIn,
    ClusterOut,
    KindOut,
    MemberIn,
    MemberOut,
)


class ClusterViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Virtual clusters: the caller's own, and all of them for administrators."""

    needs = {
        "list": Action.JOBS_VIEW,
        "retrieve": Action.JOBS_VIEW,
        "create": Action.CLUSTER_MANAGE,
        "partial_update": Action.CLUSTER_MANAGE,
        "destroy": Action.CLUSTER_MANAGE,
        "kinds": Action.CLUSTER_MANAGE,
        "bounds": Action.JOBS_VIEW,
        "set_bounds": Action.CLUSTER_MANAGE,
        "members": Action.CLUSTER_ADMINISTER,
        "add_member": Action.CLUSTER_ADMINISTER,
        "remove_member": Action.CLUSTER_ADMINISTER,
        "current": Action.SELF_MANAGE,
        "use": Action.JOBS_VIEW,
    }
    asks = {"list": ("search",), "remove_member": ("user", "group")}
    serializer_class = ClusterOut
    pagination_class = OldestFirstPagination
    queryset = VirtualCluster.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = VirtualCluster.objects.visible_to(user).prefetch_related("quotas")
        if self.action in {"members", "add_member", "remove_member"}:
            rows = rows.administered_by(user)
        if self.action == "list":
            rows = search.filter_by_text(rows, self.request.query_params.get("search", ""), "name")
        return rows

    @extend_schema(request=ClusterIn, responses={201: ClusterOut})
    @once
    def create(self, request: Request) -> Response:
        """A new cluster."""
        user: Any = request.user
        cluster = clusters.save(None, **self._read_values(request, None), by=user)
        return Response(ClusterOut(cluster).data, status=201)

    @extend_schema(request=ClusterIn, responses=ClusterOut)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change name or limits; what is left out stays."""
        user: Any = request.user
        cluster = self.get_object()
        clusters.save(cluster, **self._read_values(request, cluster), by=user)
        return Response(ClusterOut(self.get_object()).data)

    def destroy(self, request: Request, pk: str) -> Response:
        """Delete an unused cluster; jobs that ended there still show its name."""
        user: Any = request.user
        clusters.delete(self.get_object(), by=user)
        return Response(status=204)

    @extend_schema(responses=KindOut(many=True))
    @action(detail=False)
    def kinds(self, request: Request) -> Response:
        """The kinds of devices that the nodes have: how many, and how many are not guaranteed to any cluster."""
        return Response(KindOut(quotas.detect(), many=True).data)

    @extend_schema(responses=BoundsSerializer(many=True))
    @action(detail=True)
    def bounds(self, request: Request, pk: str) -> Response:
        """Least and most cores and memory (MiB) of one job per node, by device kind."""
        return Response(_bounds(self.get_object()))

    @extend_schema(request=BoundsSerializer, responses=BoundsSerializer(many=True))
    @bounds.mapping.put
    def set_bounds(self, request: Request, pk: str) -> Response:
        """Change the bounds of one device kind; counts from the next job that is submitted."""
        user: Any = request.user
        cluster = self.get_object()
        values = parse_request(BoundsSerializer(data=request.data))
        bounds.set_bounds(cluster, values.pop("kind"), bounds.Bounds(**values), by=user)
        return Response(_bounds(cluster))

    @action(detail=True)
    def members(self, request: Request, pk: str) -> Response:
        """Who belongs to the cluster: {"people": […], "groups": [names]}."""
        return Response(_members(self.get_object()))

    @extend_schema(request=MemberIn)
    @members.mapping.post
    def add_member(self, request: Request, pk: str) -> Response:
        """Let a person or a group in; a group brings everybody who is or will be in it."""
        by: Any = request.user
        cluster = self.get_object()
        values = parse_request(MemberIn(data=request.data))
        person, group = members.find(**_who(values))
        charge = values["administers"]
        if charge is not None:
            by.require(Action.CLUSTER_MANAGE)
        if group is not None:
            members.add_group(cluster, group, by=by)
        if person is not None:
            members.add(cluster, [person], by=by)
            if charge is not None:
                members.set_administrator(cluster, person, on=charge, by=by)
        return Response(_members(cluster), status=201)

    @members.mapping.delete
    def remove_member(self, request: Request, pk: str) -> Response:
        """Take out `?user=` or `?group=`; refused while they have jobs there that have not ended."""
        by: Any = request.user
        cluster = self.get_object()
        person, group = members.find(**_who(queries.read_filters(request)))
        if person is not None:
            if not cluster.memberships.filter(user=person).exists():
                raise Http404
            members.remove(cluster, person, by=by)
        if group is not None:
            if not cluster.group_links.filter(group=group).exists():
                raise Http404
            members.remove_group(cluster, group, by=by)
        return Response(status=204)

    @extend_schema(request=None, responses=ClusterOut)
    @action(detail=True, methods=["post"])
    def current(self, request: Request, pk: str) -> Response:
        """Make this the cluster that the caller's new jobs take by default."""
        user: Any = request.user
        cluster = self.get_object()
        if not cluster.memberships.filter(user=user).exists():
            raise Http404
        members.switch(user, cluster)
        return Response(ClusterOut(cluster).data)

    @action(detail=True)
    def use(self, request: Request, pk: str) -> Response:
        """What the cluster uses now: {"devices": own, borrowed, lent, free cards by kind; "people": who has what}."""
        cluster = self.get_object()
        people = [
            {"user": item.person.username, "cards": item.cards, "running": item.running, "waiting": item.waiting}
            for item in cluster_use.people(cluster)
        ]
        return Response({"devices": [asdict(item) for item in cluster_use.by_kind(cluster)], "people": people})

    def _read_values(self, request: Request, cluster: VirtualCluster | None) -> dict[str, Any]:
        serializer = ClusterIn(data=request.data, partial=cluster is not None)
        changes = parse_request(serializer, clusters.check_name, cluster=cluster)
        columns = (
            "name",
            "jobs_per_user",
            "environments_per_user",
            "max_runtime",
            "max_pause",
            "default_disk_bytes",
            "max_disk_bytes",
            "approves_environments",
        )
        values = {name: getattr(cluster, name) for name in columns} if cluster else {}
        for name in ("max_runtime", "max_pause"):
            if f"{name}_s" in changes:
                span = changes.pop(f"{name}_s")
                changes[name] = timedelta(seconds=span) if span is not None else None
        if "devices" in changes:
            changes["devices"] = {
                row["kind"]: Quota(row.get("guaranteed"), row.get("borrows", False), row.get("per_user"))
                for row in changes["devices"]
            }
        return values | changes


def _bounds(cluster: VirtualCluster) -> Any:
    rows = [{"kind": kind} | vars(bounds) for kind, _label, bounds in bounds.bounds_of_kinds(cluster)]
    return BoundsSerializer(rows, many=True).data


def _members(cluster: VirtualCluster) -> dict[str, Any]:
    people = cluster.memberships.select_related("user").order_by("user__username")
    groups = cluster.group_links.order_by("group__name").values_list("group__name", flat=True)
    return {"people": MemberOut(people, many=True).data, "groups": list(groups)}


def _who(values: Any) -> dict[str, str]:
    return {"username": values.get("user") or "", "group": values.get("group") or ""}
