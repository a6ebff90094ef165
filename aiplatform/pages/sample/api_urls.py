from django.urls import path

from aiplatform.pages.sample import api

urlpatterns = [path("sample-project/", api.SampleProjectView.as_view(), name="sample-project")]
