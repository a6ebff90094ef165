from django.urls import URLPattern, path

from inference.pipelines import list_views, text_views, trigger_views, views

app_name = "pipelines"
urlpatterns: list[URLPattern] = [
    *views.PipelinePages.urls(),
    *list_views.RunPages.urls(),
    *list_views.ApprovalPages.urls(),
    path("new/", views.new, name="new"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/edit/", views.edit, name="edit"),
    path("<int:pk>/text/", text_views.as_text, name="text"),
    path("<int:pk>/text/save/", text_views.put_text, name="put-text"),
    path("<int:pk>/versions/", text_views.versions, name="versions"),
    path("<int:pk>/versions/<int:number>/", text_views.version, name="version"),
    path("<int:pk>/versions/<int:number>/draft/", text_views.version_draft, name="version-draft"),
    path("<int:pk>/about/", views.change, name="change"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/run/", views.run_new, name="run-new"),
    path("<int:pk>/triggers/new/", trigger_views.trigger_new, name="trigger-new"),
    path("triggers/<int:pk>/switch/", trigger_views.trigger_switch, name="trigger-switch"),
    path("triggers/<int:pk>/rotate/", trigger_views.trigger_rotate, name="trigger-rotate"),
    path("triggers/<int:pk>/delete/", trigger_views.trigger_delete, name="trigger-delete"),
    path("runs/<int:pk>/", views.run_detail, name="run"),
    path("runs/<int:pk>/cancel/", views.run_act, {"verb": "cancel"}, name="run-cancel"),
    path("runs/<int:pk>/retry/", views.run_act, {"verb": "retry"}, name="run-retry"),
    path("runs/<int:pk>/skip/", views.run_act, {"verb": "skip"}, name="run-skip"),
    path("approvals/<int:pk>/", views.approval_answer, name="approval"),
]
