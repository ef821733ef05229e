"""Text files with columns, as programs and spreadsheets of many countries write them.

The encoding, what separates columns and the decimal mark are recognised, or asked for in one sentence. Every file is recognised
by itself, so the cases of a fit and those of a prediction may be written differently.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from askwise.core.parameters import check_distinct
from askwise.errors import Doubt, InputError
from askwise.tables import decimals
from askwise.tables.read_options import RECOGNISED, ReadOptions

T = TypeVar("T")
_SEPARATORS = (",", ";", "\t", "|")
_HEAD = 1 << 18  # bytes from which a file is recognised
_RECORDS = 100
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WESTERN = "cp1252"  # of Western Europe; all that latin-1 can print is in it
# A byte beyond ASCII that stands alone, or two small letters of a word that also has English ones: Größe, créé.
_ALONE = re.compile(
    rb"(?<![\x80-\xff])([\x80-\xff]|(?<=[A-Za-z])[\xdf-\xf6\xf8-\xff]{2}|[\xdf-\xf6\xf8-\xff]{2}(?=[A-Za-z]))(?![\x80-\xff])"
)
_PIECE = 100_000  # rows that are parsed at a time


def read(pandas: Any, file: Path, as_written: Sequence[str | None], options: ReadOptions) -> Any:
    """A frame. `as_written`: columns that stay so, names of which there may be more."""
    return _decoded(file, options, lambda encoding: _read(pandas, file, as_written, options, _parsing(file, options, encoding)))


def header(pandas: Any, file: Path, options: ReadOptions) -> list[str]:
    """The names of the columns."""
    return _decoded(file, options, lambda encoding: _header(pandas, file, _parsing(file, options, encoding))[1])


def cells(file: Path) -> list[list[str]]:
    """The fields of a small file as they are written."""

    def split(encoding: str) -> list[list[str]]:
        with _opened(file) as stream:
            whole = io.StringIO(stream.read().decode(encoding).removeprefix("\ufeff"), newline="")
        return [row for _, row in _records(whole, _parsing(file, RECOGNISED, encoding)["sep"]) if any(row)]

    return _decoded(file, RECOGNISED, split, quiet=True)  # a wrong name is refused anyway


def line_of(file: Path, row: int, options: ReadOptions) -> int:
    """The line of the file on which a row of its table begins. Empty lines and values of several lines count as they should."""

    def find(encoding: str) -> int:
        separator = _parsing(file, options, encoding)["sep"]
        with _opened(file) as stream:
            records = _records(io.TextIOWrapper(stream, encoding, newline=""), separator)
            return next((line for i, (line, _) in enumerate(records) if i == row + 1), row + 2)

    return _decoded(file, options, find, quiet=True)


def _opened(file: Path) -> BinaryIO:
    return gzip.open(file) if file.name.lower().endswith(".gz") else file.open("rb")  # type: ignore[return-value]


def _records(lines: Any, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its fields; empty lines are none."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    begins = 1
    for record in reader:
        if record:
            yield begins, [field.strip() for field in record]
        begins = reader.line_num + 1


def _decoded(file: Path, options: ReadOptions, work: Callable[[str], T], quiet: bool = False) -> T:
    """What `work` makes of a file in its encoding: the given one, the one its first bytes mark, UTF-8, or Western Europe's."""
    name = options.encoding or _marked(file)
    encoding = "utf-8-sig" if options.encoding is not None and codecs.lookup(name).name == "utf-8" else name
    try:
        return work(encoding)
    except UnicodeError as error:
        if options.encoding is not None or encoding != "utf-8":
            reason = getattr(error, "reason", None) or str(error)
            raise InputError(
                f"the file {file.name!r} cannot be read as {name} ({reason}); give its encoding with --encoding"
            ) from None
    example = _western(file)
    if not quiet:
        warnings.warn(
            f"{file.name!r} is not UTF-8 and is read as {_WESTERN}, usual in Western Europe, with words such as {example!r}; "
            "if that is wrong, give its encoding with --encoding",
            Doubt,
            stacklevel=2,
        )
    return work(_WESTERN)


def _marked(file: Path) -> str:
    """The encoding that the first bytes of a file mark; UTF-8 if none."""
    with _opened(file) as stream:
        head = stream.read(_HEAD)
    for mark, name in _MARKS.items():  # that of UTF-32 before that of UTF-16, which it begins with
        if head.startswith(mark):
            return name
    if b"\0" in head:
        raise InputError(
            f"the file {file.name!r} holds zero bytes, so it is not text, or UTF-16 without a mark at its start; "
            "give its encoding with --encoding, such as utf-16-le"
        )
    return "utf-8"


def _western(file: Path) -> str:
    """A word of a file that is plausible as text of Western Europe; otherwise the encoding is asked for.

    Almost any bytes can be read so. But there letters that English does not have, and signs such as °, mostly stand alone or two
    together among English ones, while words in Greek, Cyrillic or Japanese consist of such bytes.
    """
    example, alone, together, known = "", 0, 0, True
    with _opened(file) as stream:
        for line in stream:
            if line.isascii():
                continue
            word = re.search(rb"[^\s,;\"]*[\x80-\xff][^\s,;\"]*", line)
            example = example or (word[0].decode(_WESTERN, "replace") if word else "")
            known = known and not re.search(rb"[\x81\x8d\x8f\x90\x9d]", line)  # stand for nothing there
            alone += len(_ALONE.findall(line))
            together += len(re.findall(rb"[\x80-\xff]", _ALONE.sub(b"", line)))
    if not known or together > alone:
        raise InputError(
            f"the file {file.name!r} cannot be read as a table: it is not UTF-8, and its encoding cannot be recognised; "
            "give it with --encoding, such as latin-1, cp1250 or utf-16, or save the file as UTF-8"
        )
    return example


def _parsing(file: Path, options: ReadOptions, encoding: str) -> dict[str, Any]:
    """What pandas needs to know to parse a file."""
    return {"sep": options.sep or _separator(file, encoding), "encoding": encoding, "skipinitialspace": True}


def _separator(file: Path, encoding: str) -> str:
    """What separates columns: what splits the first line, and best all lines into as many fields as this."""
    with _opened(file) as stream:
        head = stream.read(_HEAD)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    usual = "\t" if file.name.lower().endswith(".tsv") else ","
    scores = {}  # the share of lines with as many fields as the first, and how many these are
    for separator in _SEPARATORS:
        records = _fields(text, separator, cut=len(head) == _HEAD)
        if records and records[0] > 1:
            scores[separator] = (sum(n == records[0] for n in records) / len(records), records[0])
    if not scores:
        return usual
    best = [separator for separator, score in scores.items() if score == max(scores.values())]
    if len(best) > 1:
        shown = " or ".join(map(repr, best))
        raise InputError(f"the columns of {file.name!r} could be separated by {shown}; say which with --sep")
    return best[0]


def _fields(text: str, separator: str, cut: bool) -> list[int]:
    """How many fields each of the first records has."""
    try:
        counts = [len(record) for _, record in islice(_records(io.StringIO(text, newline=""), separator), _RECORDS + 1)]
    except csv.Error:  # not with this separator
        return []
    return counts[:-1] if cut and len(counts) > 1 else counts


def _header(pandas: Any, file: Path, parsing: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The names of the columns of a text file, as they are written and without spaces around them."""
    # Without a word, pandas renames the second of two columns of one name, and takes a value that is too many for the name of a
    # row. So the header is read on its own first, and with it a row, which is refused here if it is longer.
    written = list(pandas.read_csv(file, header=None, nrows=2, dtype=str, keep_default_na=False, **parsing).iloc[0])
    names = [name.strip().removeprefix("\ufeff") for name in written]
    if "" in names:
        raise InputError(
            f"column {names.index('') + 1} of {file.name!r} has no name; name it, or remove it (pandas writes such "
            "a column for the row numbers unless told index=False)"
        )
    check_distinct(names, "column")
    if len(names) == 1 and any(separator in names[0] for separator in _SEPARATORS):
        raise InputError(f"the file {file.name!r} has the one column {names[0]!r}; say what separates its columns with --sep")
    return written, names


def _read(pandas: Any, file: Path, as_written: Sequence[str | None], options: ReadOptions, parsing: dict[str, Any]) -> Any:
    written, names = _header(pandas, file, parsing)
    keep = [name for name, stripped in zip(written, names, strict=True) if stripped in as_written]
    head = pandas.read_csv(file, nrows=1000, dtype=str, na_values=["?"], **parsing)
    marks = [options.decimal] if options.decimal else sorted(decimals.marks_in(head, keep))
    # people write ; where 1.234 may well be 1234
    unclear = decimals.doubtful(head, keep) if not marks and parsing["sep"] == ";" else []
    full: dict[str, Any] = {**parsing, "low_memory": False, "na_values": ["?"]}
    full["dtype"] = dict.fromkeys([*keep, *unclear], str)
    full["decimal"] = marks[0] if len(marks) == 1 else "."
    frame = _in_pieces(pandas, file, full)
    decimals.settle(frame, keep, options.decimal, marks, lambda row: f"line {line_of(file, row, options)}")
    frame.columns = names
    return frame


def _in_pieces(pandas: Any, file: Path, parsing: dict[str, Any]) -> Any:
    """A frame, read in pieces, because the parser keeps the text of all that it reads at once, twice as large as the numbers.

    A column that is not of one kind in all pieces is read again as a whole: 007 must not become 7 where a piece has no words.
    """
    pieces = list(pandas.read_csv(file, chunksize=_PIECE, **parsing))
    dtypes = zip(*(piece.dtypes for piece in pieces), strict=True)
    kinds = [{"n" if dtype.kind in "iuf" else dtype for dtype in column} for column in dtypes]
    frame = pandas.concat(pieces, ignore_index=True) if len(pieces) > 1 else pieces[0]
    del pieces
    for i in (i for i, kind in enumerate(kinds) if len(kind) > 1):
        frame.isetitem(i, pandas.read_csv(file, usecols=[i], **parsing).iloc[:, 0])
    return frame
