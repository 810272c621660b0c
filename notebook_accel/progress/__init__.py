"""What is known of a run: history, bars, log and failures, as data. No drawing, no clock of its own."""

from .history import History
from .model import RunModel
from .records import Record
from .series import Series

__all__ = ["History", "Record", "RunModel", "Series"]
