"""Partition keys at work in a client: synthetic keys, strategies for entities, and moves between partitions.

For users of the official Python client, against Pleiad and against the service alike. Keys are computed here;
whatever is asked of a container is a plan, which `run` carries out through `azure.cosmos`, and `run_async` through
`azure.cosmos.aio`:

    run(container, find_item("7", by_day.values_for("2018-08-09"))).value
"""

from __future__ import annotations

from pleiad.strategy.client import AsyncContainer, Container
from pleiad.strategy.entities import AcrossPartitions, Entities, EntityChanged, EntityExists
from pleiad.strategy.entity import Entity, Global, ParentScoped, SelfPartitioned
from pleiad.strategy.gather import find_item, query_each
from pleiad.strategy.item_path import MissingProperty
from pleiad.strategy.joined_key import JoinedKey, PaddedNumber, PaddedText
from pleiad.strategy.key_text import BadKeyPart
from pleiad.strategy.move.move import TargetTaken, move_item
from pleiad.strategy.move.reconcile import Reconciled, Unsettled, reconcile
from pleiad.strategy.move.settle import MoveConflict, Wish
from pleiad.strategy.plan import Answer, Plan
from pleiad.strategy.run import run
from pleiad.strategy.run_async import run_async
from pleiad.strategy.suffix import ComputedSuffix, RandomSuffix
from pleiad.strategy.synthetic_key import SyntheticKey
from pleiad.strategy.time_roll_up import Period, TimeRollUp

__all__ = [
    "AcrossPartitions",
    "Answer",
    "AsyncContainer",
    "BadKeyPart",
    "ComputedSuffix",
    "Container",
    "Entities",
    "Entity",
    "EntityChanged",
    "EntityExists",
    "Global",
    "JoinedKey",
    "MissingProperty",
    "MoveConflict",
    "PaddedNumber",
    "PaddedText",
    "ParentScoped",
    "Period",
    "Plan",
    "RandomSuffix",
    "Reconciled",
    "SelfPartitioned",
    "SyntheticKey",
    "TargetTaken",
    "TimeRollUp",
    "Unsettled",
    "Wish",
    "find_item",
    "move_item",
    "query_each",
    "reconcile",
    "run",
    "run_async",
]
