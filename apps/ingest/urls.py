"""Addresses of this app."""

urlpatterns: list[object] = []
websocket_urlpatterns: list[object] = []
