"""Types of arrays. Shapes are said beside the variables: B cases, T steps, F tests, C columns, K classes, A actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
