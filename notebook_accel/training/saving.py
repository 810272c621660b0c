"""Files that are either whole or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, Any

import torch


def save_whole(item: Any, target: str | os.PathLike[str] | IO[bytes]) -> None:
    """``torch.save``, by way of a temporary file beside the target that takes its name when it is complete."""
    if not isinstance(target, str | os.PathLike):
        torch.save(item, target)
        return
    path = Path(target)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            torch.save(item, file)
        os.chmod(temporary, _usual_mode())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _usual_mode() -> int:
    """The mode that ``open`` would give a new file; a temporary one is the owner's alone."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
