"""Django's error handlers: a page for browsers, JSON for other clients."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.core.error_map import respond
from apps.core.errors import CodeinfoError, InvalidInput, NotFound, Unavailable
from apps.core.http.pages import page_headers
from apps.core.principal import staff_only
from apps.core.security.access import is_page


def _answer(request: HttpRequest, error: CodeinfoError, status: int, title: str) -> HttpResponse:
    page = is_page(request)
    if page or "text/html" in request.headers.get("Accept", ""):
        context = {"title": title, "text": error.message, "code": error.code}
        shown = render(request, "site/error.html", context, status=status)
        return shown if page else page_headers(request, shown)
    response = respond(error, request)
    response.status_code = status
    return response


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = NotFound("There is nothing at this address.")
    return _answer(request, error, 404, "Page not found")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = InvalidInput("The request could not be read.")
    return _answer(request, error, 400, "Bad request")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    error = InvalidInput(
        "This form was not sent from a page of this server, or the page is too old. Reload it.",
        code="FORBIDDEN",
    )
    return _answer(request, error, 403, "Not allowed")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, staff_only(), 403, "Not allowed")


def server_error(request: HttpRequest) -> HttpResponse:
    error = Unavailable(
        "The server failed here. Its log has the details.", code="SERVER_ERROR", retryable=False
    )
    return _answer(request, error, 500, "Something went wrong")
