"""A container's definition: checked once, kept as given, and ready for the engine to use."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from pleiad import errors
from pleiad.catalog.computed import check_computed, check_computed_queries
from pleiad.catalog.copy_marks import marks_of
from pleiad.catalog.search_policy import check_full_text, check_replacement, embedding_dimensions
from pleiad.index.policy import IndexingPolicy
from pleiad.item.ttl import check_default_ttl
from pleiad.keys.definition import SYSTEM_KEY, KeyDefinition, split_path
from pleiad.limits import Limits
from pleiad.store.rows import Row

_ENCRYPTION: Final = "clientEncryptionPolicy"
_COMPUTED: Final = "computedProperties"
_TTL_PATH: Final = "ttlPropertyPath"
_KEPT_AS_GIVEN = (
    "analyticalStorageTtl",
    _COMPUTED,
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    _ENCRYPTION,
    "globalSecondaryIndexDefinition",
    "materializedViewDefinition",
)
_VERSIONS_SINCE = ".versionsSince"
_SEALED = ".sealedKeys"
"""That items are kept by the seal of their key; containers of older versions are without."""
_DEFAULT_CONFLICT_POLICY = {
    "mode": "LastWriterWins",
    "conflictResolutionPath": "/_ts",
    "conflictResolutionProcedure": "",
}


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """One unique key: the paths whose values together may occur once in a logical partition."""

    paths: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]

    def value_in(self, item: dict[str, Any]) -> bytes:
        """What an item has at the paths, as the store compares it; a missing path counts as null."""
        found = [_canonical(_value_at(item, steps)) for steps in self.steps]
        return orjson.dumps(found, option=orjson.OPT_SORT_KEYS)


@dataclass(frozen=True, slots=True)
class ContainerDefinition:
    """What the engine needs to know of a container, and the properties clients read back."""

    key: KeyDefinition
    indexing: IndexingPolicy
    default_ttl: int | None
    versions_seconds: int | None
    """How long every change can be read again from the change feed; None when only latest versions can."""
    unique_keys: tuple[UniqueKey, ...]
    properties: dict[str, Any]
    ttl_path: tuple[str, ...] = ()
    """Where items have the second that their time to live counts from; empty where that is their last write."""

    def ttl_base(self, item: dict[str, Any]) -> object:
        """What an item has at that path."""
        return _value_at(item, self.ttl_path)


def define(body: dict[str, Any], limits: Limits) -> ContainerDefinition:
    """Checks a new container's JSON and fills in what the service fills in."""
    key = _key(body.get("partitionKey"), limits)
    if key.version == 2 and body.get(_SEALED) is True:
        key = replace(key, is_sealed=True)
    check_full_text(body.get("fullTextPolicy"))
    dimensions = embedding_dimensions(body.get("vectorEmbeddingPolicy"), limits)
    indexing = IndexingPolicy.from_json(body.get("indexingPolicy"), limits, dimensions or {})
    if "defaultTtl" in body and body["defaultTtl"] is None:
        raise errors.BAD_REQUEST(
            reason="'defaultTtl' cannot be null; leave it out to switch time to live off."
        )
    default_ttl = check_default_ttl(body.get("defaultTtl"), limits)
    retention_minutes = _retention_minutes(body.get("changeFeedPolicy"), limits)
    unique_keys = _unique_keys(body.get("uniqueKeyPolicy"), limits)
    properties: dict[str, Any] = {"indexingPolicy": indexing.to_json(), "partitionKey": key.to_json()}
    if key.is_sealed:
        properties[_SEALED] = True
    if default_ttl is not None:
        properties["defaultTtl"] = default_ttl
    ttl_path = _ttl_path(body.get(_TTL_PATH), default_ttl)
    if ttl_path:
        properties[_TTL_PATH] = body[_TTL_PATH]
    properties["uniqueKeyPolicy"] = {"uniqueKeys": [{"paths": list(unique.paths)} for unique in unique_keys]}
    properties["conflictResolutionPolicy"] = _conflict_policy(body.get("conflictResolutionPolicy"))
    if retention_minutes is not None:
        properties["changeFeedPolicy"] = {"retentionDuration": retention_minutes}
    properties["geospatialConfig"] = _geospatial(body.get("geospatialConfig"))
    for name in _KEPT_AS_GIVEN:
        if body.get(name) is not None:
            properties[name] = body[name]
    check_computed(properties.get(_COMPUTED, []), limits)
    versions_seconds = retention_minutes * 60 if retention_minutes else None
    return ContainerDefinition(
        key, indexing, default_ttl, versions_seconds, unique_keys, properties, ttl_path
    )


def _key(given: object, limits: Limits) -> KeyDefinition:
    """The partition key; where there are fixed containers one without a key gets the system's, which no item has."""
    if given is None and limits.fixed_container_bytes:
        return SYSTEM_KEY
    return KeyDefinition.from_json(given, limits)


def _ttl_path(given: object, default_ttl: int | None) -> tuple[str, ...]:
    """The steps of `ttlPropertyPath`, none where there is none; the service refuses it without a default."""
    if given is None:
        return ()
    if default_ttl is None:
        raise errors.BAD_REQUEST(reason=f"'{_TTL_PATH}' can only be set where 'defaultTtl' is.")
    if not isinstance(given, str) or not given.startswith("/"):
        raise errors.BAD_REQUEST(
            reason=f"'{_TTL_PATH}' must be the path of a property, such as '/creationDate'."
        )
    return split_path(given)


def is_ttl_recounted(old: ContainerDefinition, new: ContainerDefinition) -> bool:
    """Whether a replacement changes when items expire that are there, in a way that their rows do not follow.

    A row has its time to live as it counts from its last write, so a base of its own and the default are in it.
    """
    if not (old.ttl_path or new.ttl_path):
        return False
    return (old.ttl_path, old.default_ttl) != (new.ttl_path, new.default_ttl)


def define_new(body: dict[str, Any], limits: Limits) -> ContainerDefinition:
    """The same for a container that is to be made: more strictly than for one that is there."""
    definition = define({**body, _SEALED: True}, limits)
    _check_spatial(body, definition)
    _check_computed_queries(definition, limits)
    return definition


def redefine(old: ContainerDefinition, body: dict[str, Any], limits: Limits) -> ContainerDefinition:
    """Checks a replacement: partition key, unique keys and conflict resolution of a container are for its lifetime."""
    merged = {"uniqueKeyPolicy": old.properties["uniqueKeyPolicy"], **body, _SEALED: old.key.is_sealed}
    if merged.get("partitionKey") is None:
        merged["partitionKey"] = old.key.to_json()
    if merged.get("conflictResolutionPolicy") is None:
        merged["conflictResolutionPolicy"] = old.properties["conflictResolutionPolicy"]
    if merged.get("changeFeedPolicy") is None:
        # Only a retention of 0 ends the history: not every client sends the policy along with a replacement.
        merged["changeFeedPolicy"] = old.properties.get("changeFeedPolicy")
    if merged.get("uniqueKeyPolicy") is None:
        merged["uniqueKeyPolicy"] = old.properties["uniqueKeyPolicy"]
    new = define(merged, limits)
    if new.key.paths != old.key.paths or new.key.kind != old.key.kind:
        raise errors.BAD_REQUEST(reason="Document collection partition key cannot be changed.")
    if _resolution(new) != _resolution(old):
        raise errors.BAD_REQUEST(reason="The conflict resolution policy of a container cannot be changed.")
    if new.unique_keys != old.unique_keys:
        raise errors.BAD_REQUEST(reason="The unique keys of a container cannot be changed.")
    if new.properties.get(_ENCRYPTION) != old.properties.get(_ENCRYPTION):
        raise errors.BAD_REQUEST(
            reason=f"'{_ENCRYPTION}' cannot be changed as part of collection replace operation."
        )
    check_replacement(old.properties, new.properties)
    if new.key.to_json() != old.key.to_json():
        merged["partitionKey"] = old.key.to_json()
        new = define(merged, limits)
    _check_spatial(body, new)
    if (
        new.properties.get(_COMPUTED) != old.properties.get(_COMPUTED)
        or body.get("indexingPolicy") is not None
    ):
        _check_computed_queries(new, limits)
    return new


def check_encryption_keys(definition: ContainerDefinition, known: Collection[str]) -> None:
    """Refuses a client encryption policy with a key that the database does not have."""
    policy = definition.properties.get(_ENCRYPTION)
    paths = policy.get("includedPaths") if isinstance(policy, dict) else None
    ids = [path.get("clientEncryptionKeyId") for path in paths or () if isinstance(path, dict)]
    missing = dict.fromkeys(id for id in ids if isinstance(id, str) and id not in known)
    if missing:
        raise errors.BAD_REQUEST(
            reason=f"ClientEncryptionKey with id '[{','.join(missing)}]' does not exist."
        )


def unique_keys_of(properties: dict[str, Any]) -> tuple[UniqueKey, ...]:
    """The unique keys of a container that exists, whatever the limits it was made under."""
    keys = properties.get("uniqueKeyPolicy", {}).get("uniqueKeys", [])
    all_paths = [tuple(key["paths"]) for key in keys]
    return tuple(UniqueKey(paths, tuple(map(split_path, paths))) for paths in all_paths)


def unique_values_of(keys: tuple[UniqueKey, ...]) -> Callable[[Row], tuple[bytes, ...]]:
    """Gives the value of each unique key in a stored row, as it was when the row was written."""

    def values(row: Row) -> tuple[bytes, ...]:
        if not keys:
            return ()
        item = orjson.loads(row.body)
        return tuple(key.value_in(item) for key in keys)

    return values


def versions_since(properties: dict[str, Any]) -> int:
    """From when on a container has kept all versions without a gap, in seconds since the epoch."""
    return int(properties.get(_VERSIONS_SINCE, 0))


def with_versions_since(old_properties: dict[str, Any], new: ContainerDefinition) -> dict[str, Any]:
    """The properties of a replacement, which remember when its versions began to be kept, and what copies noted."""
    properties = {**new.properties, **marks_of(old_properties)}
    if new.versions_seconds is None:
        return properties
    policy = old_properties.get("changeFeedPolicy")
    kept_before = policy is not None and policy["retentionDuration"] > 0
    since = versions_since(old_properties) if kept_before else int(time.time())
    return {**properties, _VERSIONS_SINCE: since}


def _retention_minutes(policy: object, limits: Limits) -> int | None:
    """The retention of a change feed policy; 0 says in words that no versions are kept."""
    if policy is None:
        return None
    minutes = policy.get("retentionDuration") if isinstance(policy, dict) else None
    if isinstance(minutes, float) and minutes.is_integer():
        minutes = int(minutes)
    most = limits.change_feed_retention_minutes_max
    if not isinstance(minutes, int) or isinstance(minutes, bool) or not 0 <= minutes <= most:
        raise errors.BAD_REQUEST(
            reason="'changeFeedPolicy' must be an object with a 'retentionDuration' in whole minutes, from 0 (only "
            f"latest versions) to {most}."
        )
    return minutes


def _unique_keys(policy: object, limits: Limits) -> tuple[UniqueKey, ...]:
    if policy is None:
        return ()
    keys = policy.get("uniqueKeys", []) if isinstance(policy, dict) else None
    if not isinstance(keys, list):
        raise errors.BAD_REQUEST(reason="'uniqueKeyPolicy' must be an object with a list 'uniqueKeys'.")
    if len(keys) > limits.unique_keys_per_container:
        raise errors.BAD_REQUEST(
            reason=f"A container has at most {limits.unique_keys_per_container} unique keys, not {len(keys)}."
        )
    return tuple(_unique_key(key, limits) for key in keys)


def _unique_key(key: object, limits: Limits) -> UniqueKey:
    paths = key.get("paths") if isinstance(key, dict) else None
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise errors.BAD_REQUEST(reason="Each unique key needs a list 'paths' of property paths.")
    if len(paths) > limits.unique_key_paths:
        raise errors.BAD_REQUEST(
            reason=f"A unique key has at most {limits.unique_key_paths} paths, not {len(paths)}."
        )
    definitions = [KeyDefinition.from_json({"paths": [path], "version": 2}, limits) for path in paths]
    return UniqueKey(tuple(paths), tuple(definition.path_steps[0] for definition in definitions))


def _conflict_policy(policy: object) -> dict[str, Any]:
    if policy is None:
        return dict(_DEFAULT_CONFLICT_POLICY)
    mode = policy.get("mode") if isinstance(policy, dict) else None
    if (
        not isinstance(policy, dict)
        or not isinstance(mode, str)
        or mode.lower() not in ("lastwriterwins", "custom")
    ):
        raise errors.BAD_REQUEST(reason="'conflictResolutionPolicy.mode' must be LastWriterWins or Custom.")
    path, procedure = policy.get("conflictResolutionPath"), policy.get("conflictResolutionProcedure")
    if path is not None and (not isinstance(path, str) or (path and not path.startswith("/"))):
        raise errors.BAD_REQUEST(
            reason="'conflictResolutionPath' must be the path of a property, such as /_ts."
        )
    if procedure is not None and not isinstance(procedure, str):
        raise errors.BAD_REQUEST(
            reason="'conflictResolutionProcedure' must be the link of a stored procedure, or empty."
        )
    filled = dict(_DEFAULT_CONFLICT_POLICY) if mode.lower() == "lastwriterwins" else {}
    return {**filled, **policy}


def _resolution(definition: ContainerDefinition) -> dict[str, Any]:
    """What a conflict resolution policy says, however it is written."""
    policy = definition.properties["conflictResolutionPolicy"]
    said = {name: value for name, value in policy.items() if value}
    return {**said, "mode": policy["mode"].lower()}


def _geospatial(config: object) -> dict[str, Any]:
    if config is None:
        return {"type": "Geography"}
    if not isinstance(config, dict) or config.get("type") not in ("Geography", "Geometry"):
        raise errors.BAD_REQUEST(reason="'geospatialConfig.type' must be Geography or Geometry.")
    return config


def _check_spatial(body: dict[str, Any], definition: ContainerDefinition) -> None:
    """Refuses spatial indexes that the service refuses; containers that have such ones already keep them.

    A plane has borders, a globe has none.
    """
    is_plane = definition.properties["geospatialConfig"]["type"] == "Geometry"
    for entry in (body.get("indexingPolicy") or {}).get("spatialIndexes") or []:
        if not entry.get("types"):
            raise errors.BAD_REQUEST(
                reason="The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' "
                f"array for the path '{entry['path']}'."
            )
        box = entry.get("boundingBox")
        if is_plane and box is None:
            raise errors.BAD_REQUEST(
                reason=f"Required parameter 'boundingBox' for 'Geometry' collection is missing in spatial path "
                f"'{entry['path']}'."
            )
        if not is_plane and box is not None:
            raise errors.BAD_REQUEST(
                reason=f"Incorrect parameter 'boundingBox' specified for 'Geography' collection in spatial path "
                f"'{entry['path']}'."
            )
        if box is not None:
            _check_box(box, entry["path"])


def _check_box(box: dict[str, Any], path: str) -> None:
    """Refuses a bounding box without all four borders, or with nothing between them."""
    for axis in "xy":
        low, high = _number(box, f"{axis}min", path), _number(box, f"{axis}max", path)
        if not low < high:
            raise errors.BAD_REQUEST(
                reason=f"The value of parameter '{axis}max' must be greater than the value of parameter '{axis}min' in "
                f"'boundingBox' for spatial path '{path}'."
            )


def _number(box: dict[str, Any], name: str, path: str) -> int | float:
    value = box.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise errors.BAD_REQUEST(
            reason=f"The parameter '{name}' of 'boundingBox' for spatial path '{path}' must be a number."
        )
    return value


def _check_computed_queries(definition: ContainerDefinition, limits: Limits) -> None:
    spatial = definition.properties["indexingPolicy"].get("spatialIndexes", [])
    computed = definition.properties.get(_COMPUTED, [])
    check_computed_queries(computed, [entry["path"] for entry in spatial], limits)


def _value_at(item: dict[str, Any], steps: tuple[str, ...]) -> Any:
    value: Any = item
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value


def _canonical(value: Any) -> Any:
    """A value in the one form that all equal values share: a number is a double, however it was written."""
    if isinstance(value, dict):
        return {name: _canonical(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_canonical(element) for element in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) + 0.0  # adding zero makes minus zero plain zero
    return value
