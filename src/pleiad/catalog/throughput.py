"""Throughput: manual or autoscale request units per second, and how many physical partitions serve them.

Pure: the rules of the sizing documents as functions of numbers and limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pleiad import errors
from pleiad.limits import Limits


@dataclass(frozen=True, slots=True)
class Throughput:
    """Provisioned RU/s: a fixed figure, or the maximum of an autoscale range."""

    ru: int
    autoscale: bool = False
    increment_percent: int = 0

    def checked(self, limits: Limits) -> Throughput:
        """This throughput, or an error when the value is not allowed."""
        minimum = limits.autoscale_ru_min if self.autoscale else limits.throughput_ru_min
        step = limits.autoscale_ru_step if self.autoscale else limits.throughput_ru_step
        what = "maximum autoscale throughput" if self.autoscale else "throughput"
        if self.ru < minimum:
            raise errors.BAD_REQUEST(
                reason=f"Requested throughput {self.ru} is less than required minimum throughput {minimum}."
            )
        if self.ru > limits.throughput_ru_max or self.ru % step:
            raise errors.BAD_REQUEST(
                reason=f"The {what} of {self.ru} RU/s is not allowed: it must be between {minimum} and "
                f"{limits.throughput_ru_max} in steps of {step}."
            )
        return self

    def offer_content(self) -> dict[str, Any]:
        """The `content` of the offer resource."""
        content: dict[str, Any] = {
            "offerThroughput": self.ru,
            "offerIsRUPerMinuteThroughputEnabled": False,
            "offerMinimumThroughputParameters": {
                "maxThroughputEverProvisioned": self.ru,
                "maxConsumedStorageEverInKB": 0,
            },
        }
        if self.autoscale:
            content["offerAutopilotSettings"] = {
                "tier": 0,
                "maximumTierThroughput": self.ru,
                "autoUpgrade": False,
                "maxThroughput": self.ru,
                "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": self.increment_percent}},
            }
        return content


def from_autoscale_settings(settings: object) -> Throughput:
    """The throughput an autopilot settings object asks for."""
    if not isinstance(settings, dict) or not _is_whole(settings.get("maxThroughput")):
        raise errors.BAD_REQUEST(reason="Autoscale settings need a whole number 'maxThroughput'.")
    percent = 0
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


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
