"""Throughput: manual or autoscale request units per second, and how many physical partitions serve them.

Pure: the rules of the sizing documents as functions of numbers and limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pleiad import errors
from pleiad.limits import GB, Limits

_EVER = "offerMinimumThroughputParameters"
_AUTOSCALE_FLOOR_DIVISOR = 10
"""Autoscale goes down to a tenth of its maximum, which is what an offer names as its throughput."""


@dataclass(frozen=True, slots=True)
class History:
    """What the minimum throughput of a resource depends on: the highest it ever had, the data it holds, and for a
    database how many containers share it."""

    highest_ru: int = 0
    stored_bytes: int = 0
    sharing_containers: int = 0


@dataclass(frozen=True, slots=True)
class Throughput:
    """Provisioned RU/s: a fixed figure, or the maximum of an autoscale range."""

    ru: int
    autoscale: bool = False
    increment_percent: int | None = None

    def checked(self, limits: Limits, history: History | None = None) -> Throughput:
        """This throughput, or an error when the value is not allowed for a resource with that history."""
        minimum = minimum_ru(self.autoscale, history or History(), limits)
        step = limits.autoscale_ru_step if self.autoscale else limits.throughput_ru_step
        reason = (
            f"The offer should have valid throughput values between {minimum} and {limits.throughput_ru_max} "
            f"inclusive in increments of {step}. Requested throughput {self.ru} is "
        )
        reason += (
            f"less than required minimum throughput {minimum}." if self.ru < minimum else "not one of them."
        )
        if not minimum <= self.ru <= limits.throughput_ru_max or self.ru % step:
            raise errors.BAD_REQUEST(reason=reason)
        return self

    def offer_content(self, highest_ru: int = 0, initial_ru: int = 0) -> dict[str, Any]:
        """The `content` of the offer resource; its history is what was given before, or starts now."""
        content: dict[str, Any] = {
            "offerThroughput": self.ru // _AUTOSCALE_FLOOR_DIVISOR if self.autoscale else self.ru,
            "offerIsRUPerMinuteThroughputEnabled": False,
            _EVER: {
                "maxThroughputEverProvisioned": max(self.ru, highest_ru),
                "maxConsumedStorageEverInKB": 0,
                "initialThroughput": initial_ru or self.ru,
            },
        }
        if self.autoscale:
            content["offerAutopilotSettings"] = {
                "tier": 0,
                "maximumTierThroughput": self.ru,
                "autoUpgrade": False,
                "maxThroughput": self.ru,
            }
            if self.increment_percent is not None:
                policy = {"throughputPolicy": {"incrementPercent": self.increment_percent}}
                content["offerAutopilotSettings"]["autoUpgradePolicy"] = policy
        return content


def from_autoscale_settings(settings: object) -> Throughput:
    """The throughput an autopilot settings object asks for."""
    if not isinstance(settings, dict) or not _is_whole(settings.get("maxThroughput")):
        raise errors.BAD_REQUEST(reason="Autoscale settings need a whole number 'maxThroughput'.")
    percent = None
    policy = settings.get("autoUpgradePolicy")
    if isinstance(policy, dict) and isinstance(policy.get("throughputPolicy"), dict):
        given = policy["throughputPolicy"].get("incrementPercent", 0)
        if not _is_whole(given) or not 0 <= given <= 100:
            raise errors.BAD_REQUEST(
                reason="The autoscale 'incrementPercent' must be a whole number from 0 to 100."
            )
        percent = given
    return Throughput(settings["maxThroughput"], autoscale=True, increment_percent=percent)


def from_offer_content(content: object) -> Throughput:
    """The throughput an offer's content states; autoscale settings win over the plain figure."""
    if not isinstance(content, dict):
        raise errors.BAD_REQUEST(reason="The offer needs an object 'content'.")
    if content.get("offerAutopilotSettings") is not None:
        return from_autoscale_settings(content["offerAutopilotSettings"])
    if not _is_whole(content.get("offerThroughput")):
        raise errors.BAD_REQUEST(reason="The offer's content needs a whole number 'offerThroughput'.")
    return Throughput(content["offerThroughput"])


def highest_ru(content: Mapping[str, Any]) -> int:
    """The highest throughput that the resource of an offer ever had."""
    return int(content[_EVER]["maxThroughputEverProvisioned"])


def initial_ru(content: Mapping[str, Any]) -> int:
    """The throughput that the resource of an offer was created with."""
    ever = content[_EVER]
    return int(ever.get("initialThroughput", ever["maxThroughputEverProvisioned"]))


def minimum_ru(autoscale: bool, history: History, limits: Limits) -> int:
    """The least throughput a resource may be given: by kind, highest ever, storage and containers that share it."""
    stored_gb = history.stored_bytes / GB
    extra = max(0, history.sharing_containers - limits.shared_database_containers)
    if autoscale:
        least = max(
            limits.autoscale_ru_min + extra * limits.shared_container_autoscale_ru,
            history.highest_ru / limits.autoscale_ever_divisor,
            stored_gb * limits.autoscale_ru_per_gb,
        )
        return _round_up(least, limits.autoscale_ru_step)
    least = max(
        limits.throughput_ru_min + extra * limits.shared_container_ru,
        history.highest_ru / limits.throughput_ever_divisor,
        stored_gb * limits.throughput_ru_per_gb,
    )
    return _round_up(least, limits.throughput_ru_step)


def raised_for_storage(current: Throughput, stored_bytes: int, limits: Limits) -> Throughput:
    """What a throughput becomes by itself when the data has grown beyond what it may hold; it never goes down."""
    per_gb = limits.autoscale_ru_per_gb if current.autoscale else limits.throughput_ru_per_gb
    step = limits.autoscale_ru_step if current.autoscale else limits.throughput_ru_step
    least = min(_round_up(stored_bytes / GB * per_gb, step), limits.throughput_ru_max)
    return replace(current, ru=max(current.ru, least))


def to_autoscale(current: Throughput, history: History, limits: Limits) -> Throughput:
    """What a manual throughput becomes when its resource is migrated to autoscale."""
    least = minimum_ru(True, history, limits)
    return Throughput(_round_up(max(least, current.ru), limits.autoscale_ru_step), autoscale=True)


def to_manual(current: Throughput) -> Throughput:
    """What an autoscale maximum becomes when its resource is migrated to manual throughput."""
    return Throughput(current.ru)


def instant_maximum_ru(partitions: int, limits: Limits) -> int:
    """How far the throughput of so many physical partitions can be raised without splitting one."""
    return partitions * limits.physical_partition_ru


def shares(
    total_ru: float,
    partitions: Sequence[tuple[int, tuple[int, ...]]],
    weights: Mapping[int, float],
    limits: Limits,
) -> list[float]:
    """The RU/s of each physical partition, given as id and ancestors: even, or by weight where there are weights.

    A weight goes to the partition of that id or, when it is split or merged since, evenly to its descendants. No
    share is above what a physical partition serves, whatever the total is.
    """
    families = [{id, *parents} for id, parents in partitions]
    live = {id: count for id in weights if (count := sum(id in family for family in families))}
    whole = sum(weights[id] for id in live)
    if not whole:
        return [min(total_ru / len(partitions), limits.physical_partition_ru)] * len(partitions)
    parts = [sum(weights[id] / count for id, count in live.items() if id in family) for family in families]
    return [min(total_ru * part / whole, limits.physical_partition_ru) for part in parts]


def is_splittable(key_given: bool, initial: int, shared: bool, limits: Limits) -> bool:
    """Whether a container may ever have a second physical partition; if not, it is fixed.

    Where there are fixed containers at all, it needs a partition key, and enough throughput from the start or a set
    of containers to share it with.
    """
    if not limits.fixed_container_bytes:
        return True
    return key_given and (shared or initial >= limits.fixed_below_ru)


def partition_count(throughput: Throughput, limits: Limits, shared: bool = False) -> int:
    """How many physical partitions a new container gets.

    Manual throughput up to the ceiling of one partition gets one; above it the sizing figure leaves each partition
    room to grow. Autoscale and shared throughput are stated as a maximum already, so the ceiling divides them.
    """
    if throughput.ru <= limits.physical_partition_ru:
        return 1
    per_partition = (
        limits.physical_partition_ru if throughput.autoscale or shared else limits.manual_sizing_ru
    )
    return math.ceil(throughput.ru / per_partition)


def partitions_to_serve(throughput: Throughput, limits: Limits) -> int:
    """How many physical partitions it takes to serve a throughput; raising it beyond them splits some."""
    return max(1, math.ceil(throughput.ru / limits.physical_partition_ru))


def _round_up(value: float, step: int) -> int:
    return math.ceil(value / step) * step


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
