"""What a rank gives back, through a file: values of any size, exceptions with their type.

Written and read with torch's own serialisation, so tensors keep sharing storage and always arrive on the CPU. Plain
pickle comes first because it names classes: an instance of a class from the notebook is then of that very class in
the kernel. cloudpickle carries what has no name there, and only that: a class of the notebook that it carried back by
value would replace the methods of the kernel's own class by copies that do not see the notebook's variables.
"""

from __future__ import annotations

import os
import pickle
import sys
import types
from dataclasses import dataclass
from typing import Any, NoReturn

import cloudpickle

from .pickling import can_pickle, dumps


class Unreturnable:
    """Stands for a value that a rank returned but that cannot be sent back; ``reason`` says why."""

    def __init__(self, text: str, reason: str) -> None:
        self.text, self.reason = text, reason

    def __repr__(self) -> str:
        return f"<not sent back: {self.text} ({self.reason})>"


def save_result(value: Any, path: str) -> str:
    """Write what a rank returned.

    Returns:
        "" or, when the value (or a part of a dict, list or tuple) could not be written, a sentence about it.
    """
    try:
        _save(value, path)
    except Exception as error:
        kept, note = _replace_unreturnable(value, error)
        _save(kept, path)
        return note
    return ""


def load_result(path: str) -> tuple[Any, str]:
    """Read what a rank returned; tensors on the CPU, mapped rather than read. The file can be removed afterwards.

    Returns:
        The value, and "" or, when it cannot be rebuilt here, a sentence about it.
    """
    import torch

    try:
        # weights_only=False: this user's own process wrote the file, in a folder that only this user can write to.
        return torch.load(path, map_location="cpu", mmap=True, weights_only=False), ""
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        note = f"what the function returned cannot be rebuilt in this process ({reason})"
        return Unreturnable("the value", reason), note


def _save(value: Any, path: str) -> None:
    import torch

    part = path + ".part"
    try:
        torch.save(value, part)
    except Exception:
        torch.save(value, part, pickle_module=_BY_VALUE)
    os.replace(part, path)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """By value what has no name in the kernel: lambdas, and classes made inside functions."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and obj.__module__ == "__main__" and _find(obj.__qualname__) is obj:
            return _find, (obj.__qualname__,)
        return super().reducer_override(obj)


_BY_VALUE = types.ModuleType("notebook_accel_pickle")
vars(_BY_VALUE)["Pickler"] = _Pickler


def _find(qualified_name: str) -> Any:
    """What has this name in the notebook (None: nothing)."""
    found: Any = sys.modules["__main__"]
    for name in qualified_name.split("."):
        found = getattr(found, name, None)
    return found


def _dumps(value: Any) -> bytes:
    return dumps(value, _Pickler)


def _picklable(value: Any) -> bool:
    # Whatever the value's own code raises: the rank must get as far as telling what came of its function.
    return can_pickle(value, _Pickler, BaseException)


def _replace_unreturnable(value: Any, error: Exception) -> tuple[Any, str]:
    """The value with its unpicklable parts (of a dict, list or tuple) replaced, and a sentence naming them."""
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    if isinstance(value, dict) and type(value) is dict:
        bad = [key for key, item in value.items() if not _picklable(item)]
        kept: Any = {k: Unreturnable(_short(v), reason) if k in bad else v for k, v in value.items()}
        where = ", ".join(repr(key) for key in bad)
    elif type(value) in (list, tuple):
        bad = [i for i, item in enumerate(value) if not _picklable(item)]
        kept = type(value)(Unreturnable(_short(v), reason) if i in bad else v for i, v in enumerate(value))
        where = ", ".join(f"item {i}" for i in bad)
    else:
        bad, kept, where = [0], Unreturnable(_short(value), reason), "the value"
    if not bad:
        kept, where = Unreturnable(_short(value), reason), "the value"
    return kept, f"{where} of what the function returned cannot be sent back ({reason})"


def _short(value: Any) -> str:
    try:
        return repr(value)[:80]
    except Exception:
        return f"a {type(value).__name__}"


def save_error(error: BaseException, path: str) -> bool:
    """Write an exception, without its traceback; False when not even its class can be pickled."""
    shapes = (lambda: error, lambda: _Pieces.of(error), lambda: _Pieces(type(error), (str(error),), {}))
    for shape in shapes:
        for dump in (pickle.dumps, _dumps):
            try:
                data = dump(shape())
                pickle.loads(data)
            except BaseException:
                continue
            with open(path, "wb") as file:
                file.write(data)
            return True
    return False


def load_error(path: str) -> BaseException | None:
    """Read an exception written by ``save_error``; None when it cannot be rebuilt here."""
    try:
        with open(path, "rb") as file:
            error = pickle.load(file)
        error = error.build() if isinstance(error, _Pieces) else error
    except Exception:
        return None
    return error if isinstance(error, BaseException) else None


@dataclass(frozen=True, slots=True)
class _Pieces:
    """An exception whose ``__init__`` cannot be called with its ``args``, as pickle would."""

    kind: type[BaseException]
    args: tuple[Any, ...]
    state: dict[str, Any]

    @classmethod
    def of(cls, error: BaseException) -> _Pieces:
        return cls(type(error), error.args, {name: value for name, value in vars(error).items() if _picklable(value)})

    def build(self) -> BaseException:
        error = self.kind.__new__(self.kind)
        error.args = self.args
        vars(error).update(self.state)
        return error


def leave_process(code: int) -> NoReturn:
    """End this process without destructors or exit handlers (a process group's destructor can hang for ever)."""
    os._exit(code)
