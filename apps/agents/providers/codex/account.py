"""Who is logged in to Codex, and logging in with a code. Everything here blocks."""

import logging
import threading
import time
from dataclasses import dataclass, replace
from typing import Literal

from openai_codex.errors import CodexError
from openai_codex.types import AccountLoginCompletedNotification

from apps.agents.providers.codex import home as homes
from apps.agents.providers.codex.failures import quoted, refused
from apps.agents.providers.codex.server import AppServer, settings_of
from apps.core.errors import Unavailable
from apps.core.limits import label

log = logging.getLogger("codeinfo.agents")

# How long an account counts; a home whose files change is asked again at once.
FRESH_SECONDS = 30.0
NOT_LOGGED_IN = "Codex is not logged in"
MAX_URL = 2_000
NO_CODE = "The login could not be begun"


@dataclass(frozen=True)
class Account:
    """Whether Codex can be used as it is set up; `reason` says in a sentence what is missing."""

    usable: bool
    reason: str = ""


@dataclass(frozen=True)
class Login:
    """A login under way or over: the user opens `url` and enters `code` there."""

    id: str
    url: str
    code: str
    state: Literal["waiting", "done", "failed"] = "waiting"
    error: str = ""


class Accounts:
    """The account of one home, and the one login that may be under way."""

    def __init__(self, server: AppServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._known: tuple[Account, tuple[int, ...], float] | None = None
        self.login: Login | None = None

    def read(self) -> Account:
        """Raises Unavailable where Codex does not start or cannot tell."""
        with self._lock:
            signature = homes.signature(self._server.home)
            if self._known is not None:
                account, seen, until = self._known
                if seen == signature and time.monotonic() < until:
                    return account
            account = self._ask()
            if not account.usable and self._server.stale:
                # Somebody logged in from outside, which a running process does not notice.
                self._server.close()
                account = self._ask()
            signature = homes.signature(self._server.home)
            self._known = account, signature, time.monotonic() + FRESH_SECONDS
            return account

    def forget(self) -> None:
        """Ask anew next time."""
        self._known = None

    def _ask(self) -> Account:
        try:
            # With settings that it cannot read Codex would go on as if there were none.
            self._server.ask(settings_of)
            answer = self._server.ask(lambda client: client.account_read({}))
        except CodexError as error:
            raise refused(error) from error
        if answer.account is not None or not answer.requires_openai_auth:
            return Account(usable=True)
        missing = homes.missing(self._server.home)
        return Account(usable=False, reason=f"{NOT_LOGGED_IN}{f' ({missing})' if missing else ''}.")

    def begin_login(self) -> Login:
        """A new login with a code; one that is under way is ended. Raises Unavailable."""
        self.cancel_login()
        try:
            started = self._server.ask(
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
        login, self.login = self.login, None
        if login is None or login.state != "waiting":
            return
        try:
            self._server.ask(lambda client: client.account_login_cancel(login.id))
        except CodexError as error:
            log.debug("Codex had no login to cancel: %s", error)

    def _wait(self, login: Login) -> None:
        """Until the user has entered the code, or Codex gives up waiting for it."""
        try:
            ended = self._server.ask(lambda client: client.wait_for_login_completed(login.id))
        except (CodexError, Unavailable, OSError, RuntimeError) as error:
            ended = AccountLoginCompletedNotification(success=False, error=str(error))
        self.forget()
        if self.login is not login:
            return
        if ended.success:
            self.login = replace(login, state="done")
        else:
            self.login = replace(login, state="failed", error=quoted(ended.error))
