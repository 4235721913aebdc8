"""The pages above all apps."""

from django.http import HttpRequest, HttpResponse


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return HttpResponse("Not found", status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Server error", status=500)
