from django.urls import URLPattern, path, re_path

from training.experiments import views as experiments
from training.views import catalog, jobs, outputs, pictures, planned, submit
from training.visualisation import views as visualisation

app_name = "training"
urlpatterns: list[URLPattern] = [
    path("", jobs.job_list, name="job-list"),
    path("new/", submit.job_submit, name="job-submit"),
    path("fit/", submit.job_fit, name="job-fit"),
    path("preview/", pictures.preview_new, name="preview-new"),
    path("compare/", experiments.compare, name="compare"),
    path("visualisation/", visualisation.show, name="visualisation"),
    path("presets/", catalog.presets, name="presets"),
    path("outputs/<int:job>/dataset/", outputs.dataset, name="output-dataset"),
    path("params/", catalog.params, name="params"),
    path("params/new/", catalog.params_new, name="params-new"),
    path("params/<int:pk>/", catalog.params_detail, name="params-detail"),
    path("params/<int:pk>/edit/", catalog.params_edit, name="params-edit"),
    path("params/<int:pk>/delete/", catalog.params_delete, name="params-delete"),
    path("planned/<int:pk>/", planned.detail, name="planned"),
    path("planned/<int:pk>/<slug:verb>/", planned.act, name="planned-act"),
    path("<int:pk>/", jobs.job_detail, name="job-detail"),
    path("<int:pk>/acts/", jobs.job_acts, name="job-acts"),
    path("<int:pk>/log/", jobs.job_log, name="job-log"),
    path("<int:pk>/metrics/", jobs.job_metrics, name="job-metrics"),
    path("<int:pk>/images/", pictures.job_images, name="job-images"),
    path("<int:pk>/layers/", pictures.job_layers, name="job-layers"),
    path("<int:pk>/profile/", jobs.job_profile, name="job-profile"),
    path("<int:pk>/ports/", jobs.job_ports, name="job-ports"),
    path("<int:pk>/files/", jobs.job_files, name="job-files"),
    path("<int:pk>/files/<int:attempt>/content/", jobs.job_file, name="job-file"),
    path("<int:pk>/files/<int:attempt>/zip/", jobs.job_zip, name="job-zip"),
    path("<int:pk>/events/", jobs.job_events, name="job-events"),
    path("<int:pk>/spec/", jobs.job_spec, name="job-spec"),
    path("<int:pk>/restore/", jobs.job_restore, name="job-restore"),
    re_path(r"^(?P<pk>\d+)/(?P<verb>pause|continue|finish|stop)/$", jobs.job_steer, name="job-steer"),
]
