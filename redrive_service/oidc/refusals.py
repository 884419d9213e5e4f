"""Say why a sign-in was refused: a page for the person, and a reason for the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Refusal:
    """The page that tells a person why a sign-in was refused. In its text, `{name}` stands for the provider's name.

    If `ends_session` is true, the person is also signed out.
    """

    title: str
    says: str
    status: int = 403
    ends_session: bool = False


class SignInRefused(Exception):
    """A sign-in failed. The person sees the page `refusal`. The log gets `why`, which contains no token or secret."""

    def __init__(self, refusal: Refusal, why: str) -> None:
        super().__init__(why)
        self.refusal = refusal
        self.why = why


UNREACHABLE: Final = Refusal(
    "Sign-in is not available",
    "{name} does not answer, or its answer cannot be used. Try again later. The log of the web server has the reason.",
    503,
)
EXPIRED: Final = Refusal(
    "This sign-in has expired", "It was used before, or did not begin in this browser. Sign in again.", 400
)
UNVERIFIED: Final = Refusal(
    "The sign-in failed",
    "The answer of {name} could not be verified. Sign in again. The log of the web server has the reason.",
)
NOT_SIGNED_IN: Final = Refusal("You are not signed in", "{name} did not sign you in, or your session there has ended.")
NO_ACCESS: Final = Refusal(
    "No access",
    "{name} knows you, but none of your groups has access to this service. Ask an administrator for a group that has, "
    "then sign in again.",
    ends_session=True,
)
DISABLED: Final = Refusal(
    "No access", "Your user was disabled in this service. Ask an administrator.", ends_session=True
)
UNCONFIRMED: Final = Refusal(
    "Your session must be confirmed",
    "Nothing was done: {name} has not confirmed your session for too long. Go back, reload the page, and submit the "
    "form again.",
)
NO_PASSWORDS: Final = Refusal("Passwords are switched off", "Sign in with {name}.")
