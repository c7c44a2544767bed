"""Loggers whose lines show level, time, process and place, in colours on a terminal: `mx.log`."""
from __future__ import annotations

import logging
import warnings
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger", "logging", "warnings"]

_COLOURS = {"W": 31, "E": 31, "C": 31, "I": 32, "D": 32}  # ANSI codes by a level's first letter: 31 is red, 32 green
_PLACE = "%(asctime)s %(process)d %(pathname)s:%(funcName)s:%(lineno)d"


class _Formatter(logging.Formatter):
    """A level's letter, the time and the place in brackets, then the message."""

    def __init__(self, colored: bool):
        super().__init__(datefmt="%m%d %H:%M:%S")
        self.colored = colored

    def format(self, record: logging.LogRecord) -> str:
        letter = record.levelname[:1]
        head = f"[{letter}{_PLACE}]"
        if self.colored and letter in _COLOURS:
            head = f"\x1b[{_COLOURS[letter]}m{head}\x1b[0m"
        self._style._fmt = f"{head} %(message)s"
        return super().format(record)


def get_logger(name: str | None = None, filename: str | None = None, filemode: str | None = None,
               level: int = WARNING) -> logging.Logger:
    """The logger of that name, which writes to standard error, or to a file (filemode: default "a").

    A logger that has a handler already keeps it, and its level. The root logger (no name) is left as it is.
    """
    logger = logging.getLogger(name)
    if name is not None and not logger.handlers:
        handler: logging.Handler
        if filename:
            handler = logging.FileHandler(filename, filemode or "a")
            handler.setFormatter(_Formatter(colored=False))
        else:
            handler = logging.StreamHandler()
            handler.setFormatter(_Formatter(colored=handler.stream.isatty()))
        logger.addHandler(handler)
        logger.setLevel(level)
    return logger


def getLogger(name: str | None = None, filename: str | None = None, filemode: str | None = None,
              level: int = WARNING) -> logging.Logger:
    """`get_logger`, under the name that MXNet had for it before. Warns of it."""
    warnings.warn("getLogger is deprecated, use get_logger instead", DeprecationWarning, stacklevel=2)
    return get_logger(name, filename, filemode, level)
