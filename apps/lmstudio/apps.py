from django.apps import AppConfig


class LMStudioConfig(AppConfig):
    name = "apps.lmstudio"
