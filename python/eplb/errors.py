"""Exceptions: one class per status of the C library, with the C detail text and its place."""

from __future__ import annotations


class EplbError(Exception):
    """Base of all errors of the library.

    ``layer``, ``expert``, ``rank``, ``slot`` and ``value`` (the offending number) name the place inside the input, or are None;
    for the library -1 means "none", also where the number itself is -1.
    """

    def __init__(
        self,
        text: str,
        *,
        layer: int | None = None,
        expert: int | None = None,
        rank: int | None = None,
        slot: int | None = None,
        value: int | None = None,
    ) -> None:
        super().__init__(text)
        self.layer = layer
        self.expert = expert
        self.rank = rank
        self.slot = slot
        self.value = value


class InvalidError(EplbError, ValueError):
    """An argument or a value of the input breaks a rule."""


class OutOfMemoryError(EplbError, MemoryError):
    """The library could not get memory; nothing was changed."""


class LoadOverflowError(EplbError, OverflowError):
    """A sum or product of loads does not fit in int64."""


class InfeasibleError(EplbError, ValueError):
    """No placement exists, for example fewer live slots than experts."""


class UnsupportedError(EplbError, NotImplementedError):
    """The chosen policy refuses this legal input; the text says why."""


class CancelledError(EplbError):
    """The progress callback asked to stop."""


class SystemRefusedError(EplbError, OSError):
    """The operating system refused a thread or a lock."""


class InternalError(EplbError, RuntimeError):
    """A result failed its own check: a defect of the library."""


class BusyError(EplbError):
    """Someone still uses what was to be replaced; nothing was changed, try again."""
