"""Screenshots of the admin for the documentation: `make screenshots`.

Starts the demo, lets its incident happen, parks some messages, opens the pages in Chromium as the demo's administrator,
and writes each screenshot into docs/screenshots, light and dark.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from redrive_service.sandbox.demo import ADMIN, Demo
from redrive_service.sandbox.stack import Stack
from tests.browser.chromium import LAPTOP, PHONE, Chromium, Window, program

FOLDER: Final = Path(__file__).resolve().parents[3] / "docs" / "screenshots"
LARGEST: Final = 200_000  # bytes of one picture
TALLEST: Final = 1_160  # pixels of one picture
SIZES: Final = (LAPTOP, PHONE)
CAUSES: Final = (
    (34, "PaymentDeclined", '{{"order": {n}, "customer": "c-{n}", "card": "tok_{n}", "total": "49.90"}}'),
    (12, "AddressNotFound", '{{"order": {n}, "ship_to": {{"city": "Utrecht", "zip": "3511"}}, "parcels": 2}}'),
    (5, "TimeoutError", '{{"invoice": {n}, "due": "2026-12-01", "lines": [1, 2, 3]}}'),
)


def main() -> None:
    """Takes every picture; ends with a sentence where there is no Chromium, or a picture is too large."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--messages", type=int, default=200, help="of the demo's incident")
    given = said.parse_args()
    found = program()
    if found is None:
        sys.exit("There is no Chromium here: install one, or name it in REDRIVE_CHROMIUM.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="redrive-pictures-") as folder, Stack(Path(folder)) as stack:
        take(stack, found, given.messages)
    stack.postgres.forget()  # what may lie outside of the folder


def take(stack: Stack, chromium: str, letters: int) -> None:
    """The demo, and the pictures of what it leaves."""
    with Demo(stack, say=say) as demo, Chromium(chromium) as browser:
        demo.tell_incident(letters)
        pages = work_for_people(stack)
        for scheme in ("light", "dark"):
            album(browser, demo, scheme, pages)


def say(told: str) -> None:
    """To whoever waits."""
    sys.stderr.write(f"{told}\n")


def album(chromium: Chromium, demo: Demo, scheme: str, pages: dict[str, str]) -> None:
    """Every page in light, or in dark; the dashboard on a phone, too."""
    for name, size in (("", LAPTOP), ("-phone", PHONE)):
        window = chromium.window(demo.address, size=size)
        window.dress(scheme)
        window.open("/admin/")
        window.write("Username", ADMIN)
        window.write("Password", demo.stack.secrets.admin)
        window.press("Log in")
        window.sees("Needs review")
        picture(window, f"dashboard{name}-{scheme}")
        for page, address in pages.items() if not name else ():
            window.open(address)
            if page in STEPS:
                STEPS[page](window)
            picture(window, f"{page}-{scheme}")
        window.close()


def reveal(window: Window) -> None:
    """A letter with its payload."""
    window.press("Show payload")
    window.sees("The audit log records this view")


def edit(window: Window) -> None:
    """What an edit would change; nothing is done."""
    window.press("Edit…")
    body = str(window.ask("document.querySelector('textarea[name=body]').value"))
    window.write("Exactly this text is sent", body.replace("49.90", "44.90"))
    window.press("Preview")
    window.sees("Nothing is saved yet")


STEPS: Final[dict[str, Callable[[Window], None]]] = {"message": reveal, "edit": edit}


def picture(window: Window, name: str) -> None:
    """One picture, no taller than a reader scrolls.

    Raises:
        SystemExit: it is larger than a repository should keep.
    """
    file = FOLDER / f"{name}.png"
    wide, _ = SIZES[name.endswith(("-phone-light", "-phone-dark"))]
    tall = min(int(window.ask("document.documentElement.scrollHeight")), TALLEST)
    window.do(lambda page: page.set_viewport_size({"width": wide, "height": tall}))  # what sticks to an edge does so
    window.ask("scrollTo(0, 0)")
    window.do(lambda page: page.screenshot(path=file, animations="disabled"))
    window.do(lambda page: page.set_viewport_size({"width": wide, "height": LAPTOP[1]}))
    size = file.stat().st_size
    say(f"{file.name}: {size / 1024:.0f} KiB")
    if size > LARGEST:
        sys.exit(f"{file.name} has {size:,} bytes; {LARGEST:,the limit is }. Show less on it.")


def work_for_people(stack: Stack) -> dict[str, str]:
    """Leave parked letters of a few causes; the pages to look at, by the names of their pictures."""
    os.environ.update(stack.environment(), DJANGO_SETTINGS_MODULE="redrive_service.settings")
    import django  # noqa: PLC0415  only now it is told its settings

    django.setup()
    from reprocessing.models import Run  # noqa: PLC0415  as above
    from reprocessing.pipeline.parking_lot import group_failures  # noqa: PLC0415  as above
    from tests.browser.screenshots import parked_for_screenshots  # noqa: PLC0415  as above

    letter = parked_for_screenshots.parked_letters(CAUSES)
    group_failures.assign_groups(batches=1)
    run = Run.objects.order_by("-selected", "pk").first()
    lot, here = "/admin/reprocessing/parkedletter/", f"/admin/reprocessing/parkedletter/{letter}/change/"
    pages = {"groups": "/admin/reprocessing/failuregroup/", "parking-lot": lot, "message": here, "edit": here}
    return pages | ({"run": f"/admin/reprocessing/run/{run.pk}/change/"} if run else {})


if __name__ == "__main__":
    main()
