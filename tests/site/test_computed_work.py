"""Work that requests ask for, at a real server: many at once, clients that leave, a server that
stops."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.browser.product import Product, running
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

SERVE = (sys.executable, "-m", "tests.site.computing_server")
CSRF = "c" * 32
ENDLESS, DRAWABLE = "flowchart LR\n A --> endless", "flowchart LR\n A --> B"
# More than any server draws and keeps waiting for one user.
MANY = 30


class Post:
    """A diagram that a user posts, and what came of it."""

    def __init__(self, product: Product, user: str, source: str) -> None:
        self.status, self.retry_after, self.body = 0, "", ""
        parts = urlsplit(product.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        session = (product.data.parent / f"{user}.session").read_text()
        cookies = f"sessionid={session}; csrftoken={CSRF}"
        kind = "application/x-www-form-urlencoded"
        headers = {"Cookie": cookies, "X-CSRFToken": CSRF, "Content-Type": kind}
        body = urlencode({"source": source})
        self._connection.request("POST", "/ui/chat/diagram", body, headers)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            answer = self._connection.getresponse()
            self.body = answer.read().decode()
            self.retry_after = answer.headers.get("Retry-After", "")
            self.status = answer.status
        except (OSError, http.client.HTTPException):
            self.status = -1  # closed

    def leave(self) -> None:
        """Close the connection, also while its answer is awaited."""
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    with running(tmp_path, command=SERVE, CODEINFO_REQUIRE_LOGIN="true") as product:
        yield product


@pytest.fixture
def post(product: Product) -> Iterator[Callable[[str, str], Post]]:
    posts: list[Post] = []

    def send(user: str, source: str) -> Post:
        posts.append(Post(product, user, source))
        return posts[-1]

    yield send
    for each in posts:
        each.leave()


def drawings(product: Product) -> int:
    """How many processes draw."""
    found = subprocess.run(
        ["pgrep", "-P", str(product.pid), "-f", "mermaidx"], capture_output=True, check=False
    )
    return len(found.stdout.split())


Send = Callable[[str, str], Post]


def test_a_user_who_posts_many_diagrams_is_told_to_wait_and_another_is_answered(
    product: Product, post: Send
) -> None:
    many = [post("ada", ENDLESS) for _ in range(MANY)]
    wait_until(lambda: any(each.status for each in many))
    other = post("grace", DRAWABLE)
    wait_until(lambda: other.status != 0)
    assert (other.status, "<img" in other.body) == (200, True)
    # What was not refused at once and is not drawn is refused after some time.
    wait_until(lambda: sum(each.status == 0 for each in many) <= drawings(product) // 2)
    answered = [each for each in many if each.status]
    assert {each.status for each in answered} == {429, 503}
    assert {json.loads(each.body)["code"] for each in answered} == {"RATE_LIMITED", "OVERLOADED"}
    assert all(int(each.retry_after) > 0 for each in answered)


def test_the_work_of_a_client_that_left_ends(product: Product, post: Send) -> None:
    one = post("ada", ENDLESS)
    wait_until(lambda: drawings(product) == 2)
    one.leave()
    wait_until(lambda: drawings(product) == 0)


def test_a_server_that_draws_stops(product: Product, post: Send) -> None:
    for user in ("ada", "ada", "ada", "grace"):
        post(user, ENDLESS)
    wait_until(lambda: drawings(product) >= 4)
    os.kill(product.pid, signal.SIGTERM)
    wait_until(lambda: has_ended(product.pid), seconds=20)
    assert drawings(product) == 0


def has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
