"""URLs of the home page, login, health and versions."""

from django.contrib.auth import views as auth
from django.urls import path

from apps.core.security.rights import for_users
from apps.site import api, client_views, views
from apps.site.control.api import control

user_urlpatterns = [
    path("", views.home, name="home"),
    path("ui/site/connected", views.connected, name="connected"),
    path("connect", views.connect, name="connect"),
    path("ui/palette", views.palette_results),
    path("ui/site/clients", client_views.clients, name="clients"),
    path("ui/site/question", views.question_state, name="question_state"),
    path("health", api.health_view),
    path("version", api.version_view),
    path("info", api.info_view),
    path("api/schema", api.schema_view),
    path("api/docs", views.api_docs, name="api_docs"),
    path("login", auth.LoginView.as_view(template_name="site/login.html"), name="login"),
    path("logout", auth.LogoutView.as_view(next_page="/login"), name="logout"),
]
urlpatterns = [
    *for_users(user_urlpatterns),
    path("ui/site/clients/<slug:client_id>", client_views.client_change, name="client_change"),
    path("metrics", api.metrics_view),
    path("control/<str:verb>", control),
]
