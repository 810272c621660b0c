"""cloudpickle with an exception or two of one's own."""

from __future__ import annotations

import io
from typing import Any

import cloudpickle


def dumps(value: Any, pickler: type[cloudpickle.Pickler]) -> bytes:
    """Pickle a value with this pickler."""
    target = io.BytesIO()
    pickler(target).dump(value)
    return target.getvalue()


def can_pickle(value: Any, pickler: type[cloudpickle.Pickler], refusal: type[BaseException] = Exception) -> bool:
    """Whether this pickler takes the value; a ``refusal`` raised on the way is a no."""
    try:
        dumps(value, pickler)
    except refusal:
        return False
    return True
