"""Routes of the Providers page. All are for staff."""

from django.urls import path

from apps.agents import views

urlpatterns = [
    path("providers", views.page, name="providers"),
    path("ui/providers/<str:server_id>", views.server),
]
