"""The login state of a Codex home, and login with a device code. All functions block."""

import logging
import threading
import time
from dataclasses import dataclass, replace
from typing import Literal

from openai_codex.errors import CodexError
from openai_codex.types import AccountLoginCompletedNotification

from apps.agents.providers.codex import home as homes
from apps.agents.providers.codex.failures import quoted, request_failed
from apps.agents.providers.codex.server import AppServer, effective_config
from apps.core.errors import Unavailable
from apps.core.http.limits import label

log = logging.getLogger("codeinfo.agents")

# Lifetime of the cached account. A change of the home's files invalidates it at once.
FRESH_SECONDS = 30.0
NOT_LOGGED_IN = "Codex is not logged in"
MAX_URL = 2_000
NO_CODE = "The login could not be begun"


@dataclass(frozen=True)
class Login:
    """A login with a device code.

    id: Codex's id of the login.
    url, code: the user opens `url` and enters `code`.
    state: "waiting" until the user has finished or Codex stops waiting.
    error: why it failed.
    """

    id: str
    url: str
    code: str
    state: Literal["waiting", "done", "failed"] = "waiting"
    error: str = ""


class Accounts:
    """The account of one home, and its current login, at most one."""

    def __init__(self, server: AppServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._cached: tuple[str, tuple[int, ...], float] | None = None
        self.login: Login | None = None

    def missing(self) -> str:
        """Return a sentence that says what is missing, or "" if Codex can be used; cached.

        Raises Unavailable if Codex does not start or fails.
        """
        with self._lock:
            signature = homes.signature(self._server.home)
            if self._cached is not None:
                missing, cached_signature, until = self._cached
                if cached_signature == signature and time.monotonic() < until:
                    return missing
            missing = self._fetch()
            if missing and self._server.stale:
                # The user logged in outside codeinfo; a running process does not notice that.
                self._server.close()
                missing = self._fetch()
            signature = homes.signature(self._server.home)
            self._cached = missing, signature, time.monotonic() + FRESH_SECONDS
            return missing

    def forget(self) -> None:
        """Clear the cache."""
        self._cached = None

    def _fetch(self) -> str:
        try:
            # Codex ignores settings that it cannot parse; reading them raises an error instead.
            self._server.call(effective_config)
            answer = self._server.call(lambda client: client.account_read({}))
        except CodexError as error:
            raise request_failed(error) from error
        if answer.account is not None or not answer.requires_openai_auth:
            return ""
        files = homes.missing(self._server.home)
        return f"{NOT_LOGGED_IN}{f' ({files})' if files else ''}."

    def begin_login(self) -> Login:
        """Start a login with a device code; cancel a current one. Raises Unavailable."""
        self.cancel_login()
        try:
            started = self._server.call(
                lambda client: client.account_login_start({"type": "chatgptDeviceCode"})
            ).root
        except CodexError as error:
            reason = f"{NO_CODE}: {quoted(getattr(error, 'message', error))}."
            raise Unavailable(reason, code="PROVIDER_UNAVAILABLE") from error
        url, code = getattr(started, "verification_url", ""), getattr(started, "user_code", "")
        if not url.startswith(("https://", "http://")):
            raise Unavailable(f"{NO_CODE}.", code="PROVIDER_UNAVAILABLE")
        login = self.login = Login(getattr(started, "login_id", ""), url[:MAX_URL], label(code))
        threading.Thread(target=self._wait, args=(login,), name="codex-login", daemon=True).start()
        return login

    def cancel_login(self) -> None:
        """Cancel the current login, if any."""
        login, self.login = self.login, None
        if login is None or login.state != "waiting":
            return
        try:
            self._server.call(lambda client: client.account_login_cancel(login.id))
        except CodexError as error:
            log.debug("Codex had no login to cancel: %s", error)

    def _wait(self, login: Login) -> None:
        """Wait until the user has entered the code or Codex stops waiting."""
        try:
            completed = self._server.call(lambda client: client.wait_for_login_completed(login.id))
        except (CodexError, Unavailable, OSError, RuntimeError) as error:
            completed = AccountLoginCompletedNotification(success=False, error=str(error))
        self.forget()
        if self.login is not login:
            return
        if completed.success:
            self.login = replace(login, state="done")
        else:
            self.login = replace(login, state="failed", error=quoted(completed.error))
