from django.urls import URLPattern, path, re_path

from training.experiments import views as experiments
from training.experiments.visualisation import views as visualisation
from training.runs import catalog_views, image_views, output_views, planned_views, submit_views, views

app_name = "training"
urlpatterns: list[URLPattern] = [
    path("", views.job_list, name="job-list"),
    path("new/", submit_views.job_submit, name="job-submit"),
    path("fit/", submit_views.job_fit, name="job-fit"),
    path("preview/", image_views.preview_new, name="preview-new"),
    path("compare/", experiments.compare, name="compare"),
    path("visualisation/", visualisation.show, name="visualisation"),
    path("presets/", catalog_views.presets, name="presets"),
    path("outputs/<int:job>/dataset/", output_views.dataset, name="output-dataset"),
    *catalog_views.ParameterSetPages.urls(),
    path("planned/<int:pk>/", planned_views.detail, name="planned"),
    path("planned/<int:pk>/<slug:verb>/", planned_views.act, name="planned-act"),
    path("<int:pk>/", views.job_detail, name="job-detail"),
    path("<int:pk>/acts/", views.job_acts, name="job-acts"),
    path("<int:pk>/log/", views.job_log, name="job-log"),
    path("<int:pk>/metrics/", views.job_metrics, name="job-metrics"),
    path("<int:pk>/images/", image_views.job_images, name="job-images"),
    path("<int:pk>/layers/", image_views.job_layers, name="job-layers"),
    path("<int:pk>/profile/", views.job_profile, name="job-profile"),
    path("<int:pk>/ports/", views.job_ports, name="job-ports"),
    path("<int:pk>/files/", views.job_files, name="job-files"),
    path("<int:pk>/files/<int:attempt>/content/", views.job_file, name="job-file"),
    path("<int:pk>/files/<int:attempt>/zip/", views.job_zip, name="job-zip"),
    path("<int:pk>/events/", views.job_events, name="job-events"),
    path("<int:pk>/spec/", views.job_spec, name="job-spec"),
    path("<int:pk>/restore/", views.job_restore, name="job-restore"),
    re_path(r"^(?P<pk>\d+)/(?P<verb>pause|continue|finish|stop)/$", views.job_steer, name="job-steer"),
]
