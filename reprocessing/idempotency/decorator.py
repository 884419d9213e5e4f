"""Define the decorator `idempotent`: a decorated function is executed only once for each key."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from reprocessing.idempotency.claiming import once
from reprocessing.idempotency.errors import InvalidClaim

Given = ParamSpec("Given")
Done = TypeVar("Done")
#: How to get the key or the payload of a call: the name of an argument, or a function that takes all arguments.
Argument = str | Callable[..., Any]

#: The `keep` of each decorated function, by the function's space. The system check warns if a `keep` is too short.
keep_by_space: Final[dict[str, timedelta | float]] = {}


def idempotent(  # noqa: PLR0913  # the arguments of `once`
    *,
    key: Argument,
    space: str,
    lease: timedelta | float | None = None,
    keep: timedelta | float | None = None,
    payload: Argument | None = None,
    wait: float = 0.0,
    transactional: bool = False,
    using: str | None = None,
) -> Callable[[Callable[Given, Done]], Callable[Given, Done]]:
    """Decorate a function, so that it is executed once for each key.

    Later calls return the first result, stored as JSON. `key`, `payload`: the name of an argument of the function; or a
    function that is called with all arguments of a call and returns the key or payload. For the other arguments, and
    for the errors of a call, see `once`.

    Raises:
        InvalidClaim: the function is a coroutine or a generator, or has no argument of this name.
    """

    def decorate(function: Callable[Given, Done]) -> Callable[Given, Done]:
        _refuse_what_is_not_called(function)
        key_of, payload_of = _reader(function, key), _reader(function, payload)
        if keep is not None:
            keep_by_space[space] = keep

        @wraps(function)
        def asked(*args: Given.args, **kwargs: Given.kwargs) -> Done:
            with once(
                key_of(*args, **kwargs), space=space, lease=lease, keep=keep, payload=payload_of(*args, **kwargs),
                wait=wait, transactional=transactional, using=using,
            ) as claim:  # fmt: skip
                if claim.found:
                    known: Done = claim.found.result
                    return known
                done = function(*args, **kwargs)
                claim.result(done)
                return done

        return asked

    return decorate


def _refuse_what_is_not_called(function: Callable[..., Any]) -> None:
    later = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_one(function) for is_one in later):
        raise InvalidClaim(
            f"{function.__qualname__} is a coroutine or a generator, whose work is not done when the call returns. "
            "Decorate the function that does the work, and call it with sync_to_async."
        )


def _reader(function: Callable[..., Any], wanted: Argument | None) -> Callable[..., Any]:
    if wanted is None:
        return lambda *_args, **_kwargs: None
    if callable(wanted):
        return wanted
    signature = inspect.signature(function)
    if wanted not in signature.parameters:
        raise InvalidClaim(f'{function.__qualname__} has no argument "{wanted}". Name one of {signature}.')

    def read(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # the function's own arguments
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments[wanted]

    return read
