"""What a copy of a container is asked to do, and the checks of what somebody has asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pleiad import errors
from pleiad.catalog.computed import problems_of
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.throughput import Throughput, from_offer_content
from pleiad.engine.engine import Engine
from pleiad.item.body import SYSTEM_PROPERTIES
from pleiad.keys.definition import KeyDefinition, split_path
from pleiad.limits import Limits
from pleiad.query import compile_query
from pleiad.query.errors import complaints_of

SHARE_DEFAULT: Final = 0.1
_SHARE_MIN: Final = 0.01
_SETS_MAX: Final = 20
_SHARED: Final = "shared"
_MEMBERS = frozenset(
    {
        *("source", "target", "partitionKey", "set", "online", "switch", "share"),
        *("throughput", "defaultTtl", "uniqueKeys", "indexingPolicy"),
    }
)
_NOT_TO_BE_SET = frozenset({"id", "ttl", *SYSTEM_PROPERTIES})


@dataclass(frozen=True, slots=True)
class ContainerName:
    """A container by its name and that of its database."""

    database: str
    container: str

    def __str__(self) -> str:
        return f"{self.database}/{self.container}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """One copy as it was asked for; what is not given is as at the source."""

    source: ContainerName
    target: ContainerName
    key_paths: tuple[str, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    """Properties that the items of the target get, each with the expression of its value."""
    is_online: bool = False
    """Whether the copy follows the source until somebody completes it."""
    is_switch: bool = False
    """Whether the target takes the name of the source at the end, by itself."""
    share: float = SHARE_DEFAULT
    throughput: Throughput | None = None
    is_shared: bool = False
    """Whether the target is to share the throughput of its database."""
    definition: Mapping[str, Any] = field(default_factory=dict)
    """What the definition of the target has otherwise than that of the source; None for what it is not to have."""

    @property
    def follows(self) -> bool:
        """Whether changes of the source after the beginning belong to the copy."""
        return self.is_online or self.is_switch

    def to_json(self) -> dict[str, Any]:
        """The plan as somebody would ask for it."""
        answer: dict[str, Any] = {"source": str(self.source), "target": str(self.target)}
        if self.key_paths:
            answer["partitionKey"] = list(self.key_paths)
        if self.sets:
            answer["set"] = dict(self.sets)
        answer |= {"online": self.is_online, "switch": self.is_switch, "share": self.share}
        if self.is_shared:
            answer["throughput"] = _SHARED
        elif self.throughput is not None:
            name = "autoscaleMaximumRu" if self.throughput.autoscale else "ru"
            answer["throughput"] = {name: self.throughput.ru}
        for name, value in self.definition.items():
            if name == "uniqueKeyPolicy":
                answer["uniqueKeys"] = [key["paths"] for key in value["uniqueKeys"]]
            else:
                answer[name] = value
        return answer

    def target_definition(self, source: Resource) -> dict[str, Any]:
        """The definition of the target, as a client would create it."""
        kept = {name: value for name, value in source.properties.items() if not name.startswith(".")}
        made = {**kept, **self.definition, "id": self.target.container}
        if self.key_paths:
            made["partitionKey"] = key_json(self.key_paths)
        elif made["partitionKey"].get("systemKey"):
            del made["partitionKey"]
        return {name: value for name, value in made.items() if value is not None}

    def target_throughput(self, engine: Engine, source: Resource) -> Throughput | None:
        """The throughput of the target; None where it shares that of its database, or has none."""
        if self.is_shared or engine.provisioning.is_serverless:
            return None
        offer = engine.catalog.offer_of(source.rid)
        if self.throughput is not None or offer is None:
            return self.throughput
        return from_offer_content(offer.properties["content"])


def key_json(paths: tuple[str, ...]) -> dict[str, Any]:
    """A partition key of these paths, as clients define it."""
    return {"paths": list(paths), "kind": "Hash" if len(paths) == 1 else "MultiHash", "version": 2}


def plan_from_json(body: Mapping[str, Any], limits: Limits) -> CopyPlan:
    """The plan in a request; BAD_REQUEST says what is wrong with it."""
    unknown = sorted(body.keys() - _MEMBERS)
    if unknown:
        raise _bad(
            f"unknown in the body: {', '.join(unknown)[:200]}. Known are {', '.join(sorted(_MEMBERS))}"
        )
    source, target = _name(body, "source"), _name(body, "target")
    if source == target:
        raise _bad("source and target are the same container")
    is_switch = _flag(body, "switch")
    if is_switch and source.database != target.database:
        raise _bad("only a container of the same database can take the name of another: 'switch' needs it")
    paths = _key_paths(body.get("partitionKey"), limits)
    throughput, is_shared = _throughput(body.get("throughput"))
    return CopyPlan(
        source=source,
        target=target,
        key_paths=paths,
        sets=_sets(body.get("set"), limits),
        is_online=_flag(body, "online"),
        is_switch=is_switch,
        share=_share(body.get("share", SHARE_DEFAULT)),
        throughput=throughput,
        is_shared=is_shared,
        definition=_definition(body),
    )


def check_plan(plan: CopyPlan, engine: Engine) -> None:
    """Raises what stands against a plan as things are now."""
    source = find_container(engine, plan.source)
    database = engine.database(plan.target.database)
    target = engine.catalog.find(Kind.CONTAINER, database.rid, plan.target.container)
    if any(each is not None and each.properties.get("ttlPropertyPath") for each in (source, target)):
        raise _bad("a container whose 'ttlPropertyPath' says what time to live counts from cannot be copied")
    if target is None:
        # Whatever would stop the copy at its first step is said to whoever asks for it.
        definition = plan.target_definition(source)
        engine.check_new_container(database, definition, plan.target_throughput(engine, source))
        return
    if target.rid == source.rid:
        raise _bad("source and target are the same container")
    given = set(plan.definition) | ({"throughput"} if plan.throughput or plan.is_shared else set())
    if given:
        raise _bad(
            f"the target '{plan.target}' is there already and keeps what it is: {', '.join(sorted(given))} can only be "
            "given for one that the copy makes"
        )
    paths = tuple(target.properties["partitionKey"]["paths"])
    if plan.key_paths and plan.key_paths != paths:
        raise _bad(
            f"the target '{plan.target}' is there already and has the partition key {', '.join(paths)}, not "
            f"{', '.join(plan.key_paths)}"
        )


def find_container(engine: Engine, name: ContainerName) -> Resource:
    """The container of a name."""
    return engine.find(Kind.CONTAINER, engine.database(name.database), name.container)


def _bad(reason: str) -> errors.PleiadError:
    return errors.BAD_REQUEST(reason=f"The copy cannot be made: {reason}.")


def _name(body: Mapping[str, Any], member: str) -> ContainerName:
    given = body.get(member)
    names = given.split("/") if isinstance(given, str) else []
    if len(names) != 2 or not all(names):
        raise _bad(f"'{member}' must name a database and a container, such as \"shop/orders\"")
    return ContainerName(names[0], names[1])


def _flag(body: Mapping[str, Any], member: str) -> bool:
    given = body.get(member, False)
    if not isinstance(given, bool):
        raise _bad(f"'{member}' must be true or false")
    return given


def _share(given: object) -> float:
    if not isinstance(given, int | float) or isinstance(given, bool) or not _SHARE_MIN <= given <= 1:
        raise _bad(f"'share' must be a number from {_SHARE_MIN} to 1")
    return float(given)


def _key_paths(given: object, limits: Limits) -> tuple[str, ...]:
    if given is None:
        return ()
    paths = [given] if isinstance(given, str) else given
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise _bad("'partitionKey' must be a path, such as \"/city\", or a list of paths")
    KeyDefinition.from_json(key_json(tuple(paths)), limits)
    return tuple(paths)


def _sets(given: object, limits: Limits) -> dict[str, str]:
    """The properties to be set by their names; in a request each is a path with one name."""
    if given is None:
        return {}
    if not isinstance(given, dict) or not 1 <= len(given) <= _SETS_MAX:
        raise _bad(f"'set' must be an object of 1 to {_SETS_MAX} paths with an expression each")
    found: dict[str, str] = {}
    for path, expression in given.items():
        steps = split_path(path)
        if len(steps) != 1 or steps[0] in _NOT_TO_BE_SET:
            raise _bad(
                f"'{path[:100]}' cannot be set: it must be a property of the item itself, such as /tenantMonth, and "
                "none that the database gives a meaning to"
            )
        if not isinstance(expression, str) or not expression.strip():
            raise _bad(f"'set' needs an expression for {path[:100]}, such as CONCAT(c.tenant, '-', c.month)")
        _check_expression(path, expression, limits)
        found[path] = expression
    return found


def _check_expression(path: str, expression: str, limits: Limits) -> None:
    """Refuses what is no expression, in words of its own: what clients of the service are told is of another query."""
    said = ""
    try:
        query = compile_query(expression_query(expression), limits)
    except errors.PleiadError as error:
        said = complaints_of(error)[0].message
    else:
        said = next(problems_of(query, "an expression over one item"), "")
    if said:
        raise _bad(
            f"'{expression[:200]}' for {path[:100]} is no expression over the item c: {said.rstrip('.')}"
        )


def expression_query(expression: str) -> str:
    """The query that gives the value of an expression for one item."""
    return f"SELECT VALUE ({expression}) FROM c"


def _throughput(given: object) -> tuple[Throughput | None, bool]:
    if given is None:
        return None, False
    if given == _SHARED:
        return None, True
    if isinstance(given, dict) and len(given) == 1:
        ((name, value),) = given.items()
        if name in ("ru", "autoscaleMaximumRu") and type(value) is int and value > 0:
            return Throughput(value, autoscale=name == "autoscaleMaximumRu"), False
    raise _bad("'throughput' must be \"shared\", or an object with either 'ru' or 'autoscaleMaximumRu'")


def _definition(body: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a container's definition that a request gives; their contents are checked as those of any."""
    found = {name: body[name] for name in ("defaultTtl", "indexingPolicy") if name in body}
    if "uniqueKeys" in body:
        keys = body["uniqueKeys"]
        if not isinstance(keys, list):
            raise _bad("'uniqueKeys' must be a list of lists of paths")
        found["uniqueKeyPolicy"] = {"uniqueKeys": [{"paths": paths} for paths in keys]}
    return found
