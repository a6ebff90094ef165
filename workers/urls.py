from django.urls import path

from workers.views import cluster, clusters, jobs, machines, members, queue, tasks, wishes

app_name = "workers"
urlpatterns = [
    path("queue/", queue.show, name="queue"),
    path("cluster/", cluster.show, name="resources"),
    path("cluster/nodes/<int:pk>/", cluster.node, name="node"),
    path("cluster/nodes/<int:pk>/do/<slug:verb>/", machines.act, name="node-act"),
    path("cluster/join/", machines.join, name="node-join"),
    path("cluster/join/tokens/<int:pk>/revoke/", machines.revoke, name="node-token-revoke"),
    path("tasks/", tasks.show, name="tasks"),
    path("tasks/stop/", tasks.stop, name="tasks-stop"),
    path("jobs/<int:pk>/", jobs.detail, name="job"),
    path("jobs/<int:pk>/header/", jobs.header, name="job-header"),
    path("jobs/<int:pk>/story/", jobs.story, name="job-story"),
    path("jobs/<int:pk>/priority/", wishes.priority, name="job-priority"),
    path("jobs/<int:pk>/do/<slug:verb>/", wishes.wish, name="job-wish"),
    path("clusters/", clusters.index, name="clusters"),
    path("clusters/new/", clusters.create, name="cluster-new"),
    path("clusters/<int:pk>/", clusters.detail, name="cluster-detail"),
    path("clusters/<int:pk>/edit/", clusters.edit, name="cluster-edit"),
    path("clusters/<int:pk>/delete/", clusters.delete, name="cluster-delete"),
    path("clusters/<int:pk>/bounds/", clusters.bounds, name="cluster-bounds"),
    path("clusters/<int:pk>/members/", members.show, name="cluster-members"),
    path("clusters/<int:pk>/members/add/", members.add, name="cluster-members-add"),
    path("clusters/<int:pk>/members/<int:person>/remove/", members.remove, name="cluster-member-remove"),
    path("clusters/<int:pk>/members/<int:person>/charge/", members.put_in_charge, name="cluster-member-charge"),
    path("clusters/<int:pk>/groups/add/", members.add_group, name="cluster-group-add"),
    path("clusters/<int:pk>/groups/<int:group>/remove/", members.remove_group, name="cluster-group-remove"),
]
