"""Arrays that record what NumPy does with them as an ONNX graph.

A policy is written once, in NumPy. Called with a `GraphArray` instead of an array, it computes nothing: each of its operations
becomes a node. NumPy hands its operators and functions over to such objects (`__array_ufunc__`, `__array_function__`), so the
graph computes what the policy computes. An operation that is not known here raises an error; nothing is left out silently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from askwise.core.arrays import Array

if TYPE_CHECKING:
    from askwise.stack.trees import TreeArrays

KINDS = {np.dtype(np.float32): 1, np.dtype(np.int64): 7, np.dtype(bool): 9, np.dtype(np.float64): 11}  # ONNX's numbers
COMPARES = {
    np.equal: "Equal",
    np.greater: "Greater",
    np.greater_equal: "GreaterOrEqual",
    np.less: "Less",
    np.less_equal: "LessOrEqual",
}
OF_TWO = {np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.divide: "Div", np.maximum: "Max", np.minimum: "Min"}
OF_ONE = {np.negative: "Neg", np.absolute: "Abs", np.exp: "Exp", np.log: "Log", np.sqrt: "Sqrt", np.sin: "Sin", np.tanh: "Tanh"}
OF_TRUTH_VALUES = {np.bitwise_and: "And", np.bitwise_or: "Or", np.invert: "Not"}
COMPUTES = OF_TWO | OF_ONE | OF_TRUTH_VALUES | {np.matmul: "MatMul"}
OF_TREES = "ai.onnx.ml"  # the set of operations to which those of trees belong
EVERY_ROW = object()  # `np.arange(B)` as the first index: one entry of each row


class GraphNode(NamedTuple):
    """An operation of ONNX."""

    operation: str
    inputs: tuple[str, ...]
    outputs: list[str]
    attributes: dict[str, Any]


class Graph:
    """Nodes and constants. What is computed twice, as in the two policies of a mixture, is there once."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[Any, ...], str] = {}  # (operation, inputs, attributes): name of its output
        self.constants: dict[tuple[Any, ...], tuple[str, Array]] = {}

    def node(self, operation: str, *inputs: str, **attributes: Any) -> str:
        return self.nodes.setdefault((operation, inputs, tuple(attributes.items())), f"n{len(self.nodes)}")

    def constant(self, value: Any, dtype: Any = None) -> str:
        array = np.asarray(value, dtype)
        key = array.dtype.str, array.shape, array.tobytes()
        return self.constants.setdefault(key, (f"c{len(self.constants)}", array))[0]

    def input(self, name: str, dtype: Any, *columns: int) -> GraphArray:
        return GraphArray(self, name, np.ones((2, *columns), dtype))

    def name(self, x: Any, dtype: Any) -> str:
        """Of an array or a constant, in this type."""
        if not isinstance(x, GraphArray):
            return self.constant(x, dtype)
        return x.name if x.dtype == dtype else self.node("Cast", x.name, to=KINDS[np.dtype(dtype)])

    def array(self, example: Array, operation: str, *inputs: str, **attributes: Any) -> GraphArray:
        return GraphArray(self, self.node(operation, *inputs, **attributes), example)

    def needed(self, outputs: list[str]) -> tuple[list[GraphNode], dict[str, Array]]:
        """What these outputs come from: nodes in an order in which they can run, and constants."""
        wanted, nodes = set(outputs), []
        for (operation, inputs, attributes), name in reversed(self.nodes.items()):
            if name in wanted:
                wanted.update(inputs)
                results = [name, f"{name}.index"] if operation == "TopK" else [name]
                nodes.append(GraphNode(operation, inputs, results, dict(attributes)))
        return nodes[::-1], {name: array for name, array in self.constants.values() if name in wanted}


class GraphArray(NDArrayOperatorsMixin):
    """B, ...: the output of a node. `example` is the same for two cases, from which NumPy derives types and shapes.

    Parts are copies: write into them by `x[...] = value`, not by `out=x[...]`."""

    def __init__(self, graph: Graph, name: str, example: Array) -> None:
        self.graph, self.name, self.example = graph, name, example

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.example.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        return (None, *self.example.shape[1:])

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError("a GraphArray has no values; this operation would compute with it instead of recording a node")

    def __bool__(self) -> bool:
        raise TypeError("a GraphArray is neither true nor false; choose between values with np.where")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **more: Any) -> GraphArray:
        with np.errstate(all="ignore"):
            example = getattr(ufunc, method)(*map(_example, inputs), **more)
        if method == "reduce":
            result = {np.add: self.sum, np.maximum: self.max}[ufunc](**more)
        elif ufunc is np.logaddexp and not isinstance(inputs[0], GraphArray) and inputs[0] == 0:
            result = self.graph.array(example, "Softplus", self.name)
        elif ufunc in COMPARES:
            dtype = np.result_type(*map(_example, inputs))
            result = self.graph.array(example, COMPARES[ufunc], *(self.graph.name(x, dtype) for x in inputs))
        elif ufunc in COMPUTES and method == "__call__":
            result = self.graph.array(example, COMPUTES[ufunc], *(self.graph.name(x, example.dtype) for x in inputs))
        else:
            raise _no_counterpart(ufunc)
        if out is None:
            return result
        return out[0]._become(result)  # type: ignore[no-any-return]

    def __array_function__(self, function: Any, _: Any, inputs: Any, more: Any) -> Any:
        if function is np.arange:
            return EVERY_ROW
        if function not in FUNCTIONS:
            raise _no_counterpart(function)
        return FUNCTIONS[function](self.graph, function(*_example(inputs), **more), *inputs, **more)

    def _become(self, other: GraphArray) -> GraphArray:
        """What writing into an array does: everyone who holds it has the new one."""
        self.name = self.graph.name(other, self.dtype)
        self.example = other.example.astype(self.dtype)
        return self

    def _reduced(self, operation: str, example: Array, keepdims: bool) -> GraphArray:
        return self.graph.array(example, operation, self.name, axes=(-1,), keepdims=int(keepdims))

    def sum(self, axis: int, keepdims: bool = False, dtype: Any = None) -> GraphArray:
        example = self.example.sum(axis, keepdims=keepdims, dtype=dtype)
        axes = self.graph.constant([axis])
        return self.graph.array(example, "ReduceSum", self.graph.name(self, example.dtype), axes, keepdims=int(keepdims))

    def max(self, axis: int, keepdims: bool = False) -> GraphArray:
        return self._reduced("ReduceMax", self.example.max(axis, keepdims=keepdims), keepdims)

    def min(self, axis: int, keepdims: bool = False) -> GraphArray:
        return self._reduced("ReduceMin", self.example.min(axis, keepdims=keepdims), keepdims)

    def argmax(self, axis: int) -> GraphArray:
        return self.graph.array(self.example.argmax(axis), "ArgMax", self.name, axis=axis, keepdims=0)

    def argmin(self, axis: int) -> GraphArray:
        return self.graph.array(self.example.argmin(axis), "ArgMin", self.name, axis=axis, keepdims=0)

    def any(self, axis: int | None = None) -> Any:
        """Without an axis: always true. A graph has to contain what is computed if it holds for some case."""
        return True if axis is None else self.sum(axis) > 0

    def all(self, axis: int) -> Any:
        return self.sum(axis) == self.example.shape[axis]

    def clip(self, low: Any, high: Any) -> GraphArray:
        result: GraphArray = np.minimum(np.maximum(self, low), high)
        return result

    def astype(self, dtype: Any, copy: bool = True) -> GraphArray:
        return GraphArray(self.graph, self.graph.name(self, dtype), self.example.astype(dtype))

    def copy(self) -> GraphArray:
        return GraphArray(self.graph, self.name, self.example)

    def tree_scores(self, trees: TreeArrays, classes: int) -> GraphArray:
        """B, K: see `askwise.stack.trees`. Node by node, with the operations of an array, it would take ten times as long."""
        node = np.arange(len(trees.column))
        tree, leaf = np.searchsorted(trees.root, node, "right") - 1, trees.child == node
        attributes: dict[str, Any] = {
            "nodes_treeids": tree,
            "nodes_nodeids": node,
            "nodes_featureids": trees.column,
            "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ"),
            "nodes_values": np.where(leaf, np.float32(0), trees.threshold),
            "nodes_truenodeids": np.where(leaf, 0, trees.child),
            "nodes_falsenodeids": np.where(leaf, 0, trees.child + 1),
            "target_treeids": tree[leaf],
            "target_nodeids": node[leaf],
            "target_ids": trees.output[tree[leaf]],
            "target_weights": trees.value[leaf],
        }
        parts = {name: tuple(array.tolist()) for name, array in attributes.items()}
        example = np.ones((2, classes), np.float32)
        return self.graph.array(example, "TreeEnsembleRegressor", self.name, domain=OF_TREES, n_targets=classes, **parts)

    def __getitem__(self, key: Any) -> GraphArray:
        if isinstance(key, GraphArray):  # a graph computes for all cases; writing `y[key] = ...` keeps those that are meant
            return self.copy()
        rows, columns = key
        if rows is EVERY_ROW:
            return _take_along_axis(self.graph, self.example[:, :1], self, columns[:, None], 1)[:, 0]
        example = self.example[:, columns]
        if columns is None:
            return self.graph.array(example, "Unsqueeze", self.name, self.graph.constant([1]))
        if not isinstance(columns, slice):
            return self.graph.array(example, "Gather", self.name, self.graph.constant(columns, np.int64), axis=1)
        first, end, step = columns.indices(self.example.shape[1])
        end = end if end >= 0 else -(2**63)  # backwards, to the first column
        return self.graph.array(example, "Slice", self.name, *(self.graph.constant([i]) for i in (first, end, 1, step)))

    def __setitem__(self, key: Any, value: Any) -> None:
        """A column, some columns next to each other, some cases, or one entry of each row."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        place = np.arange(self.example.shape[1])
        if rows is EVERY_ROW:
            self._become(_where(self.graph, self.example, columns[:, None] == place, value[:, None], self))
            return
        inside = place[columns].reshape(-1)
        before, old, after = self[:, : inside[0]], self[:, inside[0] : inside[-1] + 1], self[:, inside[-1] + 1 :]
        if isinstance(value, GraphArray) and value.example.ndim == 1:
            value = value[:, None]
        new = _where(self.graph, old.example, np.array([[True]]) if isinstance(rows, slice) else rows[:, None], value, old)
        self._become(_concatenate(self.graph, self.example, (before, new, after), 1))


def _example(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(_example, x))
    return x.example if isinstance(x, GraphArray) else x


def _no_counterpart(function: Any) -> TypeError:
    return TypeError(f"{function.__name__} has no counterpart in an ONNX graph yet; add it to askwise.model.onnx_graph")


def _concatenate(graph: Graph, example: Array, arrays: Any, axis: int, dtype: Any = None) -> GraphArray:
    return graph.array(example, "Concat", *(graph.name(x, example.dtype) for x in arrays if x.shape[axis]), axis=axis)


def _where(graph: Graph, example: Array, where: Any, yes: Any, no: Any) -> GraphArray:
    if example.dtype == bool:  # onnxruntime has no Where of truth values
        result: GraphArray = (where & yes) | (~where & no)
        return result
    return graph.array(example, "Where", graph.name(where, bool), *(graph.name(x, example.dtype) for x in (yes, no)))


def _sort(graph: Graph, example: Array, x: GraphArray, *_: int) -> GraphArray:
    return graph.array(example, "TopK", x.name, graph.constant([example.shape[1]]), axis=1, largest=0)


def _searchsorted(graph: Graph, example: Array, ordered: Array, x: GraphArray, side: str) -> GraphArray:
    """How many of these numbers are no larger. onnxruntime adds float32 several times as fast as whole numbers."""
    assert side == "right"
    apart = graph.array(x.example[:, :, None], "Unsqueeze", x.name, graph.constant([2]))
    no_larger: GraphArray = apart >= ordered
    return no_larger.astype(np.float32).sum(2).astype(np.int64)


def _take_along_axis(graph: Graph, example: Array, x: GraphArray, index: GraphArray, axis: int) -> GraphArray:
    return graph.array(example, "GatherElements", x.name, index.name, axis=axis)


def _full_like(graph: Graph, example: Array, like: GraphArray, value: Any = 0, dtype: Any = None) -> GraphArray:
    return graph.array(example, "Expand", graph.constant(value, example.dtype), graph.node("Shape", like.name))


FUNCTIONS: dict[Any, Callable[..., GraphArray]] = {
    np.concatenate: _concatenate,
    np.where: _where,
    np.sort: _sort,
    np.partition: _sort,
    np.cumsum: lambda graph, example, x, axis: graph.array(example, "CumSum", x.name, graph.constant(axis)),
    np.searchsorted: _searchsorted,
    np.take_along_axis: _take_along_axis,
    np.full_like: _full_like,
    np.empty_like: _full_like,
    np.zeros_like: _full_like,
    np.clip: lambda graph, example, x, low, high: x.clip(low, high),
}
