"""Pages below /datasets/."""

from django.urls import path

from datasets.views import datasets, files, imports, splits

app_name = "datasets"
urlpatterns = [
    path("", datasets.dataset_list, name="list"),
    path("new/", datasets.dataset_create, name="create"),
    path("<int:dataset_id>/", datasets.dataset_detail, name="detail"),
    path("<int:dataset_id>/related/", datasets.dataset_related, name="related"),
    path("<int:dataset_id>/edit/", datasets.dataset_edit, name="edit"),
    path("<int:dataset_id>/delete/", datasets.dataset_delete, name="delete"),
    path("<int:dataset_id>/add/", datasets.version_add, name="version-add"),
    path("<int:dataset_id>/v<int:number>/", datasets.dataset_detail, name="version"),
    path("<int:dataset_id>/v<int:number>/delete/", datasets.version_delete, name="version-delete"),
    path("<int:dataset_id>/v<int:number>/download/", files.version_download, name="version-download"),
    path("<int:dataset_id>/v<int:number>/colors/", datasets.version_colors, name="version-colors"),
    path("<int:dataset_id>/v<int:number>/split/", splits.version_split, name="version-split"),
    path("<int:dataset_id>/imports/<int:import_id>/", imports.import_detail, name="import"),
    path("<int:dataset_id>/imports/<int:import_id>/problems.csv", imports.import_problems, name="import-problems"),
    path("<int:dataset_id>/imports/<int:import_id>/preview.webp", imports.import_preview, name="import-preview"),
    path("<int:dataset_id>/imports/<int:import_id>/<slug:act>/", imports.import_act, name="import-act"),
    path("covers/", files.covers, name="covers"),
    path("images/<int:asset_id>/", files.asset_detail, name="asset"),
    path("images/<int:asset_id>/thumbnail/", files.asset_thumbnail, name="asset-thumbnail"),
    path("images/<int:asset_id>/original/", files.asset_image, name="asset-image"),
]
