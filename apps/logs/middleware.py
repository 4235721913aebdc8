"""A request id for every request, and one log entry when it is done."""

from asgiref.sync import iscoroutinefunction
from django.utils.decorators import sync_and_async_middleware


@sync_and_async_middleware
def RequestLogMiddleware(get_response):
    if iscoroutinefunction(get_response):

        async def m(request):
            return await get_response(request)
    else:

        def m(request):
            return get_response(request)

    return m
