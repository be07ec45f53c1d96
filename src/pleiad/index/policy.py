"""The indexing policy of a container: its document, its rules, and which paths of an item it indexes.

Precedence: of all rules that match a path the one with most steps decides; at equal length ``/?`` (this
scalar) beats ``/*`` (this and everything below); an included path beats an excluded one that is otherwise
equal. ``id`` and ``_ts`` are always indexed in mode consistent; in mode none nothing is.

What is filled in, so that reading a policy back shows all of it: mode and ``automatic``; ``/*`` included
when neither list has the root; ``/"_etag"/?`` excluded when no rule names it. Two forms that the service
refuses or has given up are accepted and mean the obvious: a list of included paths without the root in
either list gets ``/*`` excluded (only what is named is indexed), and ``/tags/[]`` at the end of a path
means ``/tags/[]/?``. The old root ``/`` means ``/*``, and the obsolete ``indexes`` of a path are dropped.

Composite indexes become steps and directions. Spatial, vector and full-text indexes are checked for their
shape and kept as given. Limits: ``index_paths`` per list, ``composite_indexes``, ``composite_index_paths``
per composite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.limits import Limits

ELEMENT: Final = 0
"""The step from an array to its elements; in paths given to ``is_indexed`` any integer stands for it."""

Step = str | int
Steps = tuple[Step, ...]
Composite = tuple[tuple[Steps, bool], ...]

_ETAG_PATH = '/"_etag"/?'
_SPATIAL_TYPES = ("Point", "LineString", "Polygon", "MultiPolygon")
_VECTOR_TYPES = ("flat", "quantizedFlat", "diskANN")
# No item nests deeper, and the tree of rules is walked by recursion.
_STEPS_MAX = 128
_QUANTIZATION_BYTES_MAX = 512
_SEARCH_LIST_SIZE = (25, 500)

_SEGMENT = re.compile(r'/(?:"((?:[^"\\]|\\.)*)"|(\[\])|(\w+))')
_ENDING = re.compile(r"/[*?]")
_TUPLE = re.compile(r'/\{[^{}/\[\]*?"]+(?:/[^{}/\[\]*?"]+)*(?:,[^{}/\[\]*?"]+(?:/[^{}/\[\]*?"]+)*)*\}/\?')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class PathRule:
    """One included or excluded path; ``subtree`` tells ``/*`` from ``/?``."""

    steps: Steps
    subtree: bool
    included: bool


@dataclass(slots=True)
class RuleNode:
    """What the rules decide at one path: for a scalar there, for what is below it, and by named step."""

    scalar: bool
    below: bool
    children: dict[Step, RuleNode] = field(default_factory=dict)


def _bad_path(path: str, position: int) -> PleiadError:
    return errors.BAD_REQUEST(
        reason=f"The indexing path '{path[:200]}' could not be accepted, failed near position '{position}'. "
        "A path is made of names (quoted unless they are letters, digits and underscores) and [] behind "
        "slashes, and ends in /? or /*."
    )


def _leading_steps(path: str) -> tuple[Steps, int]:
    """The steps a path starts with, and the position behind them."""
    steps: list[Step] = []
    position = 0
    while (match := _SEGMENT.match(path, position)) is not None:
        quoted, brackets, plain = match.groups()
        if brackets is not None:
            steps.append(ELEMENT)
        else:
            steps.append(plain if quoted is None else _ESCAPED.sub(r"\1", quoted))
        position = match.end()
        if len(steps) > _STEPS_MAX:
            raise _bad_path(path, position)
    return tuple(steps), position


def parse_rule(path: str, included: bool) -> PathRule | None:
    """The rule of an included or excluded path; None for a tuple path, which indexes no scalar path."""
    if path in ("/", "/*"):
        return PathRule((), True, included)
    steps, position = _leading_steps(path)
    ending = path[position:]
    if steps and _ENDING.fullmatch(ending):
        return PathRule(steps, ending == "/*", included)
    if steps and not ending and steps[-1] == ELEMENT:
        return PathRule(steps, False, included)
    if included and steps and steps.count(ELEMENT) == 1 and steps[-1] == ELEMENT and _TUPLE.fullmatch(ending):
        return None
    raise _bad_path(path, position)


def parse_plain_path(path: str) -> Steps:
    """The steps of a path without wildcard, as composite, vector and full-text indexes have them."""
    steps, position = _leading_steps(path)
    if not steps or path[position:] not in ("", "/?"):
        raise _bad_path(path, position)
    return steps


def _objects(policy: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A section of the policy that is an array of objects with a path each."""
    section = policy.get(name)
    if section is None:
        return []
    return _with_paths(section, name)


def _with_paths(section: object, name: str) -> list[dict[str, Any]]:
    if not isinstance(section, list):
        raise errors.BAD_REQUEST(reason=f"One of the specified inputs is invalid: '{name}' must be an array.")
    for entry in section:
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            raise errors.BAD_REQUEST(
                reason=f"One of the specified inputs is invalid: each entry of '{name}' must be "
                "an object with a 'path'."
            )
    return list(section)


def _mode_of(policy: Mapping[str, Any]) -> str:
    mode = policy.get("indexingMode")
    if mode is None:
        return "consistent"
    lowered = mode.lower() if isinstance(mode, str) else ""
    if lowered not in ("consistent", "lazy", "none"):
        raise errors.BAD_REQUEST(
            reason=f"The indexing mode '{mode}' is not valid; use 'consistent' or 'none'."
        )
    return lowered


def _rules_of(entries: list[dict[str, Any]], included: bool, limits: Limits) -> list[PathRule]:
    name = "included" if included else "excluded"
    if len(entries) > limits.index_paths:
        raise errors.BAD_REQUEST(
            reason=f"The indexing policy has {len(entries)} {name} paths; the limit is {limits.index_paths}."
        )
    rules = [parse_rule(entry["path"], included) for entry in entries]
    return [rule for rule in rules if rule is not None]


def _fill_paths(document: dict[str, Any], mode: str, limits: Limits) -> tuple[PathRule, ...]:
    """Complete the lists of paths in the document, and give the rules they make."""
    included = [
        {key: value for key, value in entry.items() if key != "indexes"}
        for entry in _objects(document, "includedPaths")
    ]
    excluded = _objects(document, "excludedPaths")
    rules = _rules_of(included, True, limits) + _rules_of(excluded, False, limits)
    if mode != "none":
        if not any(rule.steps == () for rule in rules):
            root_included = not included
            (included if root_included else excluded).append({"path": "/*"})
            rules.append(PathRule((), True, root_included))
        if not any(rule.steps == ("_etag",) for rule in rules):
            excluded.append({"path": _ETAG_PATH})
            rules.append(PathRule(("_etag",), False, False))
    for entry in included:
        if entry["path"] == "/":
            entry["path"] = "/*"
    document["includedPaths"] = included
    document["excludedPaths"] = excluded
    return tuple(rules)


def _composite(entries: list[dict[str, Any]], limits: Limits) -> Composite:
    if not 2 <= len(entries) <= limits.composite_index_paths:
        raise errors.BAD_REQUEST(
            reason=f"A composite index must have 2 to {limits.composite_index_paths} paths; "
            f"this one has {len(entries)}."
        )
    paths: list[tuple[Steps, bool]] = []
    for entry in entries:
        order = entry.setdefault("order", "ascending")
        if not isinstance(order, str) or order.lower() not in ("ascending", "descending"):
            raise errors.BAD_REQUEST(
                reason=f"The order '{order}' of the composite path '{entry['path']}' must be "
                "ascending or descending."
            )
        entry["order"] = order.lower()
        steps = parse_plain_path(entry["path"])
        if any(steps == other for other, _ in paths):
            raise errors.BAD_REQUEST(
                reason=f"The path '{entry['path']}' occurs twice in one composite index."
            )
        paths.append((steps, order.lower() == "ascending"))
    return tuple(paths)


def _composites_of(document: Mapping[str, Any], limits: Limits) -> tuple[Composite, ...]:
    section = document.get("compositeIndexes")
    if section is None:
        return ()
    if not isinstance(section, list):
        raise errors.BAD_REQUEST(
            reason="One of the specified inputs is invalid: 'compositeIndexes' must be an array."
        )
    if len(section) > limits.composite_indexes:
        raise errors.BAD_REQUEST(
            reason=f"The indexing policy has {len(section)} composite indexes; "
            f"the limit is {limits.composite_indexes}."
        )
    return tuple(_composite(_with_paths(entries, "compositeIndexes"), limits) for entries in section)


def _check_spatial(document: Mapping[str, Any], limits: Limits) -> None:
    entries = _objects(document, "spatialIndexes")
    _rules_of(entries, True, limits)
    for entry in entries:
        types = entry.get("types", [])
        if not isinstance(types, list) or not all(each in _SPATIAL_TYPES for each in types):
            raise errors.BAD_REQUEST(
                reason=f"The types of the spatial index '{entry['path']}' must be of "
                f"{', '.join(_SPATIAL_TYPES)}."
            )
        # One type switches the path on for all of them.
        entry["types"] = list(_SPATIAL_TYPES)
        if not isinstance(entry.get("boundingBox", {}), dict):
            raise errors.BAD_REQUEST(
                reason=f"The boundingBox of the spatial index '{entry['path']}' must be an object."
            )


def _check_range(name: str, value: object, minimum: int, maximum: int) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise errors.BAD_REQUEST(
            reason=f"The Vector Indexing Policy parameter {name} value :: {value} is out of range. "
            f"The allowed range is between {minimum} and {maximum}."
        )


def _check_shard_key(entry: Mapping[str, Any]) -> None:
    paths = entry.get("vectorIndexShardKey")
    if paths is None:
        return
    if not isinstance(paths, list):
        raise errors.BAD_REQUEST(
            reason="One of the specified inputs is invalid: 'vectorIndexShardKey' must be an array of paths."
        )
    if len(paths) > 1:
        raise errors.BAD_REQUEST(
            reason=f"The number of shard paths defined in the Vector Indexing Policy: {len(paths)} "
            "exceeds the maximum: 1."
        )
    for path in paths:
        if not isinstance(path, str) or not path.startswith("/"):
            raise errors.BAD_REQUEST(reason=f"The Vector Indexing Policy has an invalid Shard Path: {path}.")
        parse_plain_path(path)


def _check_vectors(document: Mapping[str, Any], dimensions: Mapping[str, int] | None) -> None:
    met: set[str] = set()
    for entry in _objects(document, "vectorIndexes"):
        path = entry["path"]
        if path in met:
            raise errors.BAD_REQUEST(reason=f"Duplicate Path :{path} found in Vector Indexing Policy.")
        met.add(path)
        if ELEMENT in parse_plain_path(path):
            raise errors.BAD_REQUEST(reason=f"The vector index path '{path}' must not lead into an array.")
        if entry.get("type") not in _VECTOR_TYPES:
            raise errors.BAD_REQUEST(
                reason=f"The Vector Indexing Policy's Index Type::{entry.get('type')} is invalid; "
                "use flat, quantizedFlat or diskANN."
            )
        quantization_bytes_max = _QUANTIZATION_BYTES_MAX
        if dimensions is not None:
            if path not in dimensions:
                raise errors.BAD_REQUEST(
                    reason=f"The Vector Indexing Policy's path::{path} not matching in Embedding's path."
                )
            quantization_bytes_max = min(quantization_bytes_max, dimensions[path])
        _check_range("QuantizationByteSize", entry.get("quantizationByteSize"), 1, quantization_bytes_max)
        _check_range("IndexingSearchListSize", entry.get("indexingSearchListSize"), *_SEARCH_LIST_SIZE)
        _check_shard_key(entry)


def build_rule_tree(rules: Iterable[PathRule], consistent: bool) -> RuleNode:
    """The rules as a tree of steps, each node inheriting from above what no rule of its own decides."""
    decided: dict[tuple[Steps, bool], bool] = {}
    for rule in rules:
        key = (rule.steps, rule.subtree)
        decided[key] = consistent and (rule.included or decided.get(key, False))
    if consistent:
        decided[("id",), False] = True
        decided[("_ts",), False] = True
    root_below = decided.get(((), True), False)
    root = RuleNode(scalar=root_below, below=root_below)
    for steps, subtree in sorted(decided, key=lambda key: (len(key[0]), not key[1])):
        node = root
        for step in steps:
            if step not in node.children:
                node.children[step] = RuleNode(scalar=node.below, below=node.below)
            node = node.children[step]
        if subtree:
            node.below = decided[steps, subtree]
        node.scalar = decided[steps, subtree]
    return root


@dataclass(frozen=True, slots=True)
class IndexingPolicy:
    """A checked policy; two are equal when their completed documents are."""

    mode: str
    automatic: bool
    document_text: bytes
    rules: tuple[PathRule, ...] = field(compare=False)
    composites: tuple[Composite, ...] = field(compare=False)
    tree: RuleNode = field(compare=False, repr=False)

    @classmethod
    def from_json(
        cls, value: object | None, limits: Limits, vector_dimensions: Mapping[str, int] | None = None
    ) -> IndexingPolicy:
        """The policy in a container's definition, the default policy for None.

        With ``vector_dimensions`` (path to dimensions, from the container's embeddings) vector indexes are
        also checked against the embeddings they are for. BAD_REQUEST for a policy that cannot be accepted.
        """
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise errors.BAD_REQUEST(
                reason="One of the specified inputs is invalid: 'indexingPolicy' must be an object."
            )
        try:
            given: dict[str, Any] = orjson.loads(orjson.dumps(value))
        except TypeError as error:
            raise errors.BAD_REQUEST(reason=f"The indexing policy is not valid JSON: {error}") from error
        mode = _mode_of(given)
        automatic = given.get("automatic", mode != "none")
        if automatic is not None and not isinstance(automatic, bool):
            raise errors.BAD_REQUEST(reason="The 'automatic' of an indexing policy must be true or false.")
        # Every item of an index is in it, whatever the policy says: some clients send false for what is not set.
        automatic = bool(automatic) or mode != "none"
        document = {**given, "indexingMode": mode, "automatic": automatic}
        rules = _fill_paths(document, mode, limits)
        composites = _composites_of(document, limits)
        _check_spatial(document, limits)
        _check_vectors(document, vector_dimensions)
        for entry in _objects(document, "fullTextIndexes"):
            parse_plain_path(entry["path"])
        tree = build_rule_tree(rules, mode != "none")
        return cls(mode, automatic, orjson.dumps(document), rules, composites, tree)

    def to_json(self) -> dict[str, Any]:
        """The completed policy document, a new one with each call."""
        document: dict[str, Any] = orjson.loads(self.document_text)
        return document

    def is_indexed(self, steps: Steps) -> bool:
        """Whether a scalar value at this path is indexed; an integer stands for any element of an array."""
        node = self.tree
        for step in steps:
            child = node.children.get(ELEMENT if isinstance(step, int) else step)
            if child is None:
                return node.below
            node = child
        return node.scalar
