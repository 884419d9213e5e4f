"""A Chromium that tests drive, and windows in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    sync_playwright,
)
from playwright.sync_api import (
    TimeoutError as NotSeen,
)

Done = TypeVar("Done")

#: Where a Chromium is looked for, beside $REDRIVE_CHROMIUM.
NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 10_000  # milliseconds that a page has for whatever is waited for
LAPTOP, PHONE = (1280, 800), (390, 844)

# What the policy refuses is told in the console, too, but in words that differ from one Chromium to the next.
_TELL_REFUSALS = """
document.addEventListener("securitypolicyviolation", (one) => {
  console.error(`the policy refused ${one.violatedDirective}: ${one.blockedURI} ${one.sample}`);
});
"""


def program() -> str | None:
    """The Chromium to be driven; None: there is none here."""
    return next(filter(None, map(shutil.which, (os.environ.get("REDRIVE_CHROMIUM", ""), *NAMES))), None)


class Chromium:
    """One Chromium without a screen, alive inside a `with` block.

    Playwright keeps a loop running in the thread that it is used in, and there Django refuses to ask its database: so
    it has a thread of its own, and tests keep theirs.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chromium")
        self._browser: Browser

    def __enter__(self) -> Self:
        self._playwright = self.do(sync_playwright().start)
        arguments = ["--no-sandbox", "--disable-gpu"]
        self._browser = self.do(
            lambda: self._playwright.chromium.launch(executable_path=self._program, args=arguments, headless=True)
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._browser.close)
        self.do(self._playwright.stop)
        self._thread.shutdown()

    def do(self, work: Callable[[], Done]) -> Done:
        """Have the browser's thread do it."""
        return self._thread.submit(work).result()

    def window(
        self, desk: str, *, session: str = "", size: tuple[int, int] = LAPTOP, javascript: bool = True
    ) -> Window:
        """A window of somebody whose session this is, or of nobody's."""
        context = self.do(
            lambda: self._browser.new_context(
                base_url=desk, viewport={"width": size[0], "height": size[1]}, java_script_enabled=javascript
            )
        )
        if session:
            self.do(lambda: context.add_cookies([{"name": "sessionid", "value": session, "url": desk}]))
        return Window(self, context, desk)


class Window:
    """One person's window. Whatever goes wrong in it is kept: `troubles` tells, and forgets."""

    def __init__(self, chromium: Chromium, context: BrowserContext, desk: str) -> None:
        self._chromium = chromium
        self._context = context
        self._desk = urlsplit(desk).netloc
        self._troubles: list[str] = []
        self._page: Page = chromium.do(self._furnished)

    def _furnished(self) -> Page:
        self._context.set_default_timeout(PATIENCE)
        self._context.add_init_script(_TELL_REFUSALS)
        page = self._context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self._troubles.append(f"a script failed: {error}"))
        page.on("dialog", self._asked)
        page.on("request", self._sent)
        page.on("requestfailed", self._unanswered)
        page.on("response", self._answered)
        return page

    def do(self, work: Callable[[Page], Done]) -> Done:
        """What the page has to say, or is made to do."""
        return self._chromium.do(lambda: work(self._page))

    def troubles(self) -> list[str]:
        """What went wrong since this was asked last."""
        found, self._troubles = self._troubles, []
        return found

    def close(self) -> None:
        """It is over."""
        self._chromium.do(self._context.close)

    def open(self, address: str) -> int:
        """Go there; the status of the answer."""
        answer = self.do(lambda page: page.goto(address))
        return answer.status if answer else 0

    def press(self, name: str) -> None:
        """The button, or else the link, of this name."""

        def work(page: Page) -> None:
            by_name = page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name))
            by_name.first.click()

        self.do(work)

    def write(self, label: str, text: str) -> None:
        """Fill in the field of this label; the search box on top of each page is no such field."""
        self.do(lambda page: page.locator("#content").get_by_label(label).first.fill(text))

    def choose(self, label: str, option: str) -> None:
        """Choose in the list of this label."""
        self.do(lambda page: page.get_by_label(label).first.select_option(label=option))

    def tick(self, place: str, *, off: bool = False) -> None:
        """Tick the box at this place, or take its tick away."""
        self.do(lambda page: page.locator(place).first.set_checked(not off))

    def sees(self, text: str, *, where: str = "body") -> None:
        """Wait until this is to be read there."""
        try:
            self.do(lambda page: page.locator(where).get_by_text(text).first.wait_for(state="visible"))
        except NotSeen as error:
            focus = self.ask("document.activeElement.outerHTML.slice(0, 200)")
            error.add_note(f"{self.ask('location.href')}, focus on {focus}, troubles {self._troubles}: {self.reads()}")
            raise

    def sees_no_more(self, text: str, *, where: str = "body") -> None:
        """Wait until this is not to be read there, or no longer."""
        self.do(lambda page: page.locator(where).get_by_text(text).first.wait_for(state="hidden"))

    def reads(self, where: str = "body") -> str:
        """The text there."""
        return self.do(lambda page: page.locator(where).first.inner_text())

    def ask(self, script: str) -> Any:  # noqa: ANN401  # whatever the page answers
        """What a script says of the page."""
        return self.do(lambda page: page.evaluate(script))

    def set_clock(self) -> None:
        """From the next page on, its time passes when it is told so."""
        self.do(lambda page: page.clock.install())

    def pass_time(self, seconds: float) -> None:
        """Let the page's time pass."""
        self.do(lambda page: page.clock.run_for(int(seconds * 1_000)))

    def dress(self, scheme: str) -> None:
        """Light or dark."""
        dark = scheme == "dark"
        self.do(lambda page: page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce"))

    def lose_the_net(self, *, lost: bool = True) -> None:
        """No request gets anywhere, or all do again."""
        self._chromium.do(lambda: self._context.set_offline(lost))

    @property
    def address(self) -> str:
        """Where it is, without the host."""
        return urlsplit(self.do(lambda page: page.url)).path

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._troubles.append(f"the console says: {message.text} ({message.location.get('url', '')})")

    def _asked(self, dialog: Dialog) -> None:
        self._troubles.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _sent(self, request: Request) -> None:
        found = urlsplit(request.url)
        if found.scheme not in {"data", "about", "blob"} and found.netloc != self._desk:
            self._troubles.append(f"somebody else was asked: {request.url}")

    def _unanswered(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # what a page that is left was still waiting for
            self._troubles.append(f"no answer: {request.url} ({request.failure})")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and not response.request.is_navigation_request():
            self._troubles.append(f"{response.status}: {response.url}")
