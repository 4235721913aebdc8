from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "apps.conversations"
