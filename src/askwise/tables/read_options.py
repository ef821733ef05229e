"""What a person can say about how a file is written, where the file does not show it by itself."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field, fields
from typing import Any

from askwise.errors import InputError


def _option(metavar: str, words: str) -> Any:
    return field(default=None, metadata={"metavar": metavar, "words": words})


@dataclass(frozen=True)
class ReadOptions:
    """Each is None where it is to be recognised. The command line has an option for each field, a plan of a bench a setting."""

    sep: str | None = _option("CHAR", "what separates the columns of a text file, such as ';' or tab (default: recognised)")
    decimal: str | None = _option("CHAR", "the decimal mark of numbers in text, '.' or ',' (default: recognised)")
    encoding: str | None = _option("NAME", "the encoding of a text file, such as latin-1 or utf-16 (default: recognised)")
    sheet: str | None = _option("NAME", "the sheet of an .xlsx file (default: the first)")

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"--{option.name} is {value!r}; it must be text")
        if self.sep is not None:
            object.__setattr__(self, "sep", {"tab": "\t", "\\t": "\t"}.get(self.sep, self.sep))
            if len(self.sep) != 1 or self.sep.isalnum() or self.sep in "\r\n\"'.":
                raise InputError(f"--sep is {self.sep!r}; it must be one character that separates columns, such as ; or tab")
        if self.decimal not in (None, ".", ","):
            raise InputError(f"--decimal is {self.decimal!r}; it must be . or ,")
        if self.encoding is not None:
            try:
                "a".encode(codecs.lookup(self.encoding).name)
            except (LookupError, ValueError):
                raise InputError(
                    f"--encoding is {self.encoding!r}, which is unknown; it must be like utf-8, latin-1 or utf-16"
                ) from None

    def refuse(self, names: tuple[str, ...], file: str, files: str) -> None:
        """Where these options can mean nothing for a file, they are refused: somebody expects something of them."""
        for name in names:
            if getattr(self, name) is not None:
                raise InputError(f"--{name} is only for {files}; leave it out for {file!r}")


OPTIONS = tuple(option.name for option in fields(ReadOptions))
RECOGNISED = ReadOptions()
