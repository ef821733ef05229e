"""The shape of pictures, and patches of them as tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.errors import InputError, quoted


@dataclass(frozen=True)
class PictureShape:
    """The shape of pictures, and the patches that are bought as one test each."""

    rows: int
    columns: int
    planes: int
    patch: tuple[int, int]

    @classmethod
    def of(cls, shape: Any, patch: Any = None) -> PictureShape | None:
        """From what a user says; None without a shape."""
        if shape is None:
            if patch is not None:
                raise InputError("patch is given, but no shape; say the height and width of the pictures: shape=(28, 28)")
            return None
        sizes = _whole(shape, "shape", "(28, 28), or (32, 32, 3) with colours", (2, 3))
        of_patch = _whole(1 if patch is None else patch, "patch", "4 or (4, 4)", (1, 2))
        height, width = of_patch[0], of_patch[-1]
        if height > sizes[0] or width > sizes[1]:
            raise InputError(f"the patch is {height} x {width}, which is more than a picture of {sizes[0]} x {sizes[1]}")
        return cls(sizes[0], sizes[1], sizes[2] if len(sizes) == 3 else 1, (height, width))

    @property
    def size(self) -> int:
        """Columns of the table."""
        return self.rows * self.columns * self.planes

    @property
    def words(self) -> str:
        """28 x 28, or 32 x 32 x 3."""
        return f"{self.rows} x {self.columns}" + (f" x {self.planes}" if self.planes > 1 else "")

    def flat(self, X: Any) -> Any:
        """Pictures as rows of a table; what is a table already stays as it is."""
        shape, whole = np.shape(X)[1:], (self.rows, self.columns, self.planes)
        if len(shape) < 2:
            return X
        if shape != whole and not (self.planes == 1 and shape == whole[:2]):
            raise InputError(f"the pictures are {' x '.join(map(str, shape))}; by shape= they must be {self.words}")
        return np.reshape(np.asarray(X), (len(X), self.size))

    def reveals(self, columns: Sequence[str]) -> dict[str, list[str]]:
        """The columns that each test shows; empty where each column is a test of its own."""
        if len(columns) != self.size:
            raise InputError(f"pictures of {self.words} have {self.size} columns; the table has {len(columns)}")
        height, width = self.patch
        if self.planes * height * width == 1:
            return {}
        row, column, _ = np.indices((self.rows, self.columns, self.planes)).reshape(3, -1)
        word = "pixel" if height * width == 1 else "patch"
        tests: dict[str, list[str]] = {}
        for name, r, c in zip(columns, (row // height).tolist(), (column // width).tolist(), strict=True):
            tests.setdefault(f"{word} {r},{c}", []).append(name)
        return tests


def _whole(value: Any, name: str, example: str, lengths: tuple[int, ...]) -> list[int]:
    """Whole numbers above 0."""
    sizes = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
    fine = len(sizes) in lengths and all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n > 0 for n in sizes)
    if not fine:
        raise InputError(f"{name} is {quoted(value)}; it must be whole numbers above 0 such as {example}")
    return [int(n) for n in sizes]
