"""Tree ensembles, linear models and chains of layers in ONNX graphs; the nodes before them are the preprocessing."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from fasterce.kernels.arrays import LINEAR, LOGISTIC, RELU, TANH
from fasterce.models.adapters.onnx import BLOCK, OnnxModel, start_session
from fasterce.models.compiled.form import LOGIT, NUMBER, PROBABILITY, SIGMOIDS, SOFTMAX, Form
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import Transform
from fasterce.models.compiled.read_network import Layers
from fasterce.models.compiled.read_trees import ModelTrees, TreeNodes, join_trees
from fasterce.typing import Floats, Indices, Objects

ACTIVATIONS = {"Relu": RELU, "Tanh": TANH, "Sigmoid": LOGISTIC}
# Nodes that pass values on, between the layers of a chain or after the last.
PASSING = ("Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Dropout")
Structure = ModelTrees | Layers


class OnnxGraph:
    """The nodes of a graph, by what they produce and consume."""

    def __init__(self, content: bytes) -> None:
        self.onnx = import_module("onnx")
        self.model = self.onnx.load_model_from_string(content)
        graph = self.model.graph
        self.nodes = list(graph.node)
        self.constants = {one.name: self.onnx.numpy_helper.to_array(one) for one in graph.initializer}

    def attributes(self, node: Any) -> dict[str, Any]:
        return {one.name: self.onnx.helper.get_attribute_value(one) for one in node.attribute}

    def consumers(self, name: str) -> list[Any]:
        return [node for node in self.nodes if name in node.input]

    def single(self, *kinds: str) -> Any:
        """Return the only node of some kinds, None if there is none; raises if there are several."""
        found = [node for node in self.nodes if node.op_type in kinds]
        if len(found) > 1:
            raise NotCompiledError("models.compile_structure", received=f"{len(found)} x {found[0].op_type}")
        return found[0] if found else None

    def until(self, tensor: str) -> Callable[[dict[str, Objects]], Objects]:
        """Return a function from the graph's inputs to one of its tensors."""
        if any(one.name == tensor for one in self.model.graph.input):
            return lambda fed: np.asarray(fed[tensor])
        part = self.onnx.ModelProto()
        part.CopyFrom(self.model)
        del part.graph.output[:]
        part.graph.output.append(self.onnx.ValueInfoProto(name=tensor))
        session = start_session(part.SerializeToString())
        return lambda fed: np.asarray(session.run([tensor], fed)[0])


def read_onnx(model: OnnxModel) -> tuple[Transform, Structure]:
    """Return the preprocessing of an ONNX model and its structure; raises `NotCompiledError`."""
    if model.graph is None or model.block != BLOCK:
        raise NotCompiledError("models.compile_structure", received="a session, or a fixed number of rows")
    graph = OnnxGraph(model.graph)
    trees = graph.single("TreeEnsembleClassifier", "TreeEnsembleRegressor")
    linear = graph.single("LinearClassifier", "LinearRegressor")
    structure: Structure
    if trees is not None:
        first, structure = trees.input[0], _read_trees(graph.attributes(trees), model)
    elif linear is not None:
        first, structure = linear.input[0], _read_linear(graph.attributes(linear), model)
    else:
        first, structure = _read_chain(graph, model)
    run = graph.until(first)

    def transform(frame: pd.DataFrame) -> Objects:
        return run(dict(model.feed(frame)))

    return transform, structure


def _form(model: OnnxModel, outputs: int, transform: str) -> Form:
    """Return what raw outputs are, given the transform that follows them."""
    if model.predicts_numbers:
        return NUMBER
    if model.activation is not None:
        transform = {"softmax": "SOFTMAX", "sigmoid": "LOGISTIC"}[model.activation]
    if outputs == 1:
        found = LOGIT if transform == "LOGISTIC" else None
    else:
        found = {"SOFTMAX": SOFTMAX, "LOGISTIC": SIGMOIDS, "NONE": PROBABILITY}.get(transform)
    if found is None:
        raise NotCompiledError("models.compile_structure", received=transform)
    return found


def _read_trees(about: dict[str, Any], model: OnnxModel) -> ModelTrees:
    """Read the attributes of a tree ensemble."""
    modes = np.array([mode.decode() for mode in about["nodes_modes"]])
    tree = np.array(about["nodes_treeids"])
    if not set(modes) <= {"LEAF", "BRANCH_LEQ", "BRANCH_LT"} or "nodes_values" not in about or (np.diff(tree) < 0).any():
        raise NotCompiledError("models.compile_structure", received=", ".join(sorted(set(modes))))
    width = max(about["nodes_nodeids"]) + 1
    place = np.zeros((tree.max() + 1) * width, dtype=np.intp)
    place[tree * width + about["nodes_nodeids"]] = np.arange(len(tree))
    value, base, form = _leaves(about, model, place, width)
    threshold = np.array(about["nodes_values"], dtype=np.float64)
    missing = about.get("nodes_missing_value_tracks_true") or np.zeros(len(tree))
    nodes = TreeNodes(
        np.array(about["nodes_featureids"]),
        np.where(modes == "BRANCH_LT", np.nextafter(threshold, -np.inf), threshold),
        np.where(modes == "LEAF", -1, place[tree * width + about["nodes_truenodeids"]]),
        np.where(modes == "LEAF", -1, place[tree * width + about["nodes_falsenodeids"]]),
        np.array(missing, dtype=bool),
        value,
    )
    return replace(join_trees([nodes], base, form, single=True), root=np.unique(tree, return_index=True)[1])


def _leaves(about: dict[str, Any], model: OnnxModel, place: Indices, width: int) -> tuple[Floats, Floats, Form]:
    """Return the raw outputs of nodes, those before any tree, and what they are."""
    prefix = "class" if "class_ids" in about else "target"
    ids, weights = np.array(about[f"{prefix}_ids"]), np.array(about[f"{prefix}_weights"], dtype=np.float64)
    rows = place[np.array(about[f"{prefix}_treeids"]) * width + about[f"{prefix}_nodeids"]]
    # With two classes, all weights may be those of one of them: the second.
    one = len(np.unique(ids)) == 1
    value = np.zeros((len(about["nodes_treeids"]), 1 if one else ids.max() + 1))
    np.add.at(value, (rows, ids * (not one)), weights)
    base = np.zeros(value.shape[1]) + np.array(about.get("base_values") or [0.0], dtype=np.float64)
    transform = about.get("post_transform", b"NONE").decode()
    if about.get("aggregate_function", b"SUM") == b"AVERAGE":
        value = value / (max(about["nodes_treeids"]) + 1)
    if one and transform == "NONE" and not model.predicts_numbers and (weights >= 0).all():
        return np.hstack([-value, value]), np.append(1 - base, base), PROBABILITY
    return value, base, _form(model, value.shape[1], transform)


def _read_linear(about: dict[str, Any], model: OnnxModel) -> Layers:
    offsets = np.array(about.get("intercepts", [0.0]), dtype=np.float64)
    weights = np.array(about["coefficients"], dtype=np.float64).reshape(len(offsets), -1).T
    transform = about.get("post_transform", b"NONE").decode()
    if len(offsets) == 2 and transform == "LOGISTIC":
        weights, offsets = weights[:, 1:], offsets[1:]
    return Layers((weights,), (offsets,), _form(model, len(offsets), transform))


def _read_chain(graph: OnnxGraph, model: OnnxModel) -> tuple[str, Layers]:
    """Read matrix products one after another, each with an offset and an activation."""
    first = next((node for node in graph.nodes if node.op_type in ("MatMul", "Gemm")), None)
    if first is None:
        raise NotCompiledError("models.compile_structure", received="no trees, no layers")
    weights, offsets, activations = [], [], ["NONE"]
    node = first
    while node is not None:
        if node.op_type in ("MatMul", "Gemm"):
            weight, offset = _product(graph, node)
            weights.append(weight)
            offsets.append(offset)
            activations.append("NONE")
        elif node.op_type == "Add":
            added = next((graph.constants[name] for name in node.input if name in graph.constants), np.zeros(0))
            if added.size != len(offsets[-1]):
                raise NotCompiledError("models.compile_structure", received=node.op_type)
            offsets[-1] = offsets[-1] + added.reshape(-1)
        elif node.op_type in (*ACTIVATIONS, "Softmax"):
            activations[-1] = node.op_type
        elif node.op_type not in PASSING:
            break
        following = graph.consumers(node.output[0])
        node = following[0] if following else None
    hidden = set(activations[1:-1])
    if len(hidden) > 1 or not hidden <= {*ACTIVATIONS, "NONE"}:
        raise NotCompiledError("models.compile_structure", received=", ".join(sorted(hidden)))
    transform = {"Sigmoid": "LOGISTIC", "Softmax": "SOFTMAX"}.get(activations[-1], activations[-1])
    activation = ACTIVATIONS.get(hidden.pop(), LINEAR) if hidden else LINEAR
    return first.input[0], Layers(tuple(weights), tuple(offsets), _form(model, len(offsets[-1]), transform), activation)


def _product(graph: OnnxGraph, node: Any) -> tuple[Floats, Floats]:
    about = graph.attributes(node)
    weight = graph.constants.get(node.input[1])
    if weight is None or about.get("transA", 0) or weight.ndim != 2:
        raise NotCompiledError("models.compile_structure", received=node.op_type)
    weight = about.get("alpha", 1.0) * (weight.T if about.get("transB", 0) else weight).astype(np.float64)
    offset = graph.constants[node.input[2]] if len(node.input) > 2 else np.zeros(1)
    return weight, about.get("beta", 1.0) * offset.astype(np.float64).reshape(-1) + np.zeros(weight.shape[1])
