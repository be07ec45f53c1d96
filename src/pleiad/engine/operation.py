"""The closed list of what a request can be, with the right that each needs.

A head binds every route to one operation of this list. What a caller may do follows from the operation that runs
(`access.check`), and never from what a request says of itself; metrics and faults know operations by the same list.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from pleiad.workload import record

_RECORDED: Final = {
    "read": record.Operation.READ,
    "create": record.Operation.CREATE,
    "upsert": record.Operation.UPSERT,
    "replace": record.Operation.REPLACE,
    "patch": record.Operation.PATCH,
    "delete": record.Operation.DELETE,
    "delete_partition_key": record.Operation.DELETE_PARTITION_KEY,
    "feed": record.Operation.READ_FEED,
    "changes": record.Operation.CHANGE_FEED,
    "query": record.Operation.QUERY,
    "batch": record.Operation.BATCH,
    "script": record.Operation.SCRIPT,
}
"""What workload records call the operations that are in them."""


class Area(Enum):
    """What an operation is about."""

    OPEN = "open"
    """Health, metrics and the page: open to everybody, or decided by the operation itself."""
    ACCOUNT = "account"
    DATABASE = "database"
    CONTAINER = "container"
    ITEM = "item"
    SCRIPT = "script"
    CONFLICT = "conflict"
    USER = "user"
    PERMISSION = "permission"
    ENCRYPTION_KEY = "encryption key"
    OFFER = "offer"
    ADMIN = "admin"


class Effect(Enum):
    """Whether an operation may change something."""

    READ = "read"
    WRITE = "write"


class Reach(Enum):
    """How much of a container an operation touches, which is what a resource token has to cover."""

    OUTSIDE = "outside"
    """More than one container, or nothing in one: no resource token covers it."""
    ANY = "any"
    """Nothing that a token would have to cover."""
    SHAPE = "shape"
    """The definition and the ranges of the container, which clients need for whatever they may do in it."""
    PLAN = "plan"
    """The definition too, for those who may query."""
    ITEM = "item"
    """One item."""
    ROWS = "rows"
    """Items of the partition key of the request, or of all keys when it names none."""
    WHOLE = "whole"
    """What belongs to the container as a whole."""


class Operation(Enum):
    """Every operation of every head: its name, what it is about, what it does, and how far it reaches."""

    READ_HEALTH = ("read_health", Area.OPEN, Effect.READ, Reach.ANY)
    READ_PAGE = ("read_page", Area.OPEN, Effect.READ, Reach.ANY)
    READ_METRICS = ("read_metrics", Area.OPEN, Effect.READ, Reach.ANY)
    HAND_OVER = ("hand_over", Area.OPEN, Effect.READ, Reach.ANY)
    """Gives the key to who brings the token of a link: the operation itself decides."""
    READ_ADDRESSES = ("read_addresses", Area.ACCOUNT, Effect.READ, Reach.SHAPE)
    READ_ACCOUNT = ("read_account", Area.ACCOUNT, Effect.READ, Reach.ANY)
    READ_RIGHTS = ("read_rights", Area.ACCOUNT, Effect.READ, Reach.ANY)

    LIST_DATABASES = ("list_databases", Area.DATABASE, Effect.READ, Reach.OUTSIDE)
    QUERY_DATABASES = ("query_databases", Area.DATABASE, Effect.READ, Reach.OUTSIDE)
    CREATE_DATABASE = ("create_database", Area.DATABASE, Effect.WRITE, Reach.OUTSIDE)
    READ_DATABASE = ("read_database", Area.DATABASE, Effect.READ, Reach.OUTSIDE)
    DELETE_DATABASE = ("delete_database", Area.DATABASE, Effect.WRITE, Reach.OUTSIDE)

    LIST_CONTAINERS = ("list_containers", Area.CONTAINER, Effect.READ, Reach.OUTSIDE)
    QUERY_CONTAINERS = ("query_containers", Area.CONTAINER, Effect.READ, Reach.OUTSIDE)
    CREATE_CONTAINER = ("create_container", Area.CONTAINER, Effect.WRITE, Reach.OUTSIDE)
    READ_CONTAINER = ("read_container", Area.CONTAINER, Effect.READ, Reach.SHAPE)
    REPLACE_CONTAINER = ("replace_container", Area.CONTAINER, Effect.WRITE, Reach.OUTSIDE)
    DELETE_CONTAINER = ("delete_container", Area.CONTAINER, Effect.WRITE, Reach.WHOLE)
    LIST_RANGES = ("list_ranges", Area.CONTAINER, Effect.READ, Reach.SHAPE)

    READ_ITEM = ("read", Area.ITEM, Effect.READ, Reach.ITEM)
    CREATE_ITEM = ("create", Area.ITEM, Effect.WRITE, Reach.ROWS)
    UPSERT_ITEM = ("upsert", Area.ITEM, Effect.WRITE, Reach.ROWS)
    REPLACE_ITEM = ("replace", Area.ITEM, Effect.WRITE, Reach.ITEM)
    PATCH_ITEM = ("patch", Area.ITEM, Effect.WRITE, Reach.ITEM)
    DELETE_ITEM = ("delete", Area.ITEM, Effect.WRITE, Reach.ITEM)
    DELETE_PARTITION_KEY = ("delete_partition_key", Area.ITEM, Effect.WRITE, Reach.ROWS)
    LIST_ITEMS = ("feed", Area.ITEM, Effect.READ, Reach.ROWS)
    READ_CHANGES = ("changes", Area.ITEM, Effect.READ, Reach.ROWS)
    READ_BARRIER = ("barrier", Area.ITEM, Effect.READ, Reach.SHAPE)
    """How far a physical partition is, which a client asks that compares replicas."""
    QUERY_ITEMS = ("query", Area.ITEM, Effect.READ, Reach.ROWS)
    PLAN_QUERY = ("query_plan", Area.ITEM, Effect.READ, Reach.PLAN)
    EXPLAIN_QUERY = ("explain", Area.ITEM, Effect.READ, Reach.PLAN)
    READ_PATHS = ("paths", Area.ITEM, Effect.READ, Reach.WHOLE)
    READ_KEY_VALUES = ("keys", Area.ITEM, Effect.READ, Reach.WHOLE)
    RUN_BATCH = ("batch", Area.ITEM, Effect.WRITE, Reach.ROWS)
    """A write whatever is in it, as on the service: reads alone need no batch."""
    RUN_SCRIPT = ("script", Area.ITEM, Effect.WRITE, Reach.ROWS)

    LIST_SCRIPTS = ("list_scripts", Area.SCRIPT, Effect.READ, Reach.WHOLE)
    QUERY_SCRIPTS = ("query_scripts", Area.SCRIPT, Effect.READ, Reach.WHOLE)
    CREATE_SCRIPT = ("create_script", Area.SCRIPT, Effect.WRITE, Reach.WHOLE)
    READ_SCRIPT = ("read_script", Area.SCRIPT, Effect.READ, Reach.WHOLE)
    REPLACE_SCRIPT = ("replace_script", Area.SCRIPT, Effect.WRITE, Reach.WHOLE)
    DELETE_SCRIPT = ("delete_script", Area.SCRIPT, Effect.WRITE, Reach.WHOLE)

    LIST_CONFLICTS = ("list_conflicts", Area.CONFLICT, Effect.READ, Reach.WHOLE)
    QUERY_CONFLICTS = ("query_conflicts", Area.CONFLICT, Effect.READ, Reach.WHOLE)
    READ_CONFLICT = ("read_conflict", Area.CONFLICT, Effect.READ, Reach.WHOLE)
    DELETE_CONFLICT = ("delete_conflict", Area.CONFLICT, Effect.WRITE, Reach.WHOLE)

    LIST_USERS = ("list_users", Area.USER, Effect.READ, Reach.OUTSIDE)
    QUERY_USERS = ("query_users", Area.USER, Effect.READ, Reach.OUTSIDE)
    CREATE_USER = ("create_user", Area.USER, Effect.WRITE, Reach.OUTSIDE)
    READ_USER = ("read_user", Area.USER, Effect.READ, Reach.OUTSIDE)
    REPLACE_USER = ("replace_user", Area.USER, Effect.WRITE, Reach.OUTSIDE)
    DELETE_USER = ("delete_user", Area.USER, Effect.WRITE, Reach.OUTSIDE)

    LIST_PERMISSIONS = ("list_permissions", Area.PERMISSION, Effect.READ, Reach.OUTSIDE)
    QUERY_PERMISSIONS = ("query_permissions", Area.PERMISSION, Effect.READ, Reach.OUTSIDE)
    CREATE_PERMISSION = ("create_permission", Area.PERMISSION, Effect.WRITE, Reach.OUTSIDE)
    READ_PERMISSION = ("read_permission", Area.PERMISSION, Effect.READ, Reach.OUTSIDE)
    REPLACE_PERMISSION = ("replace_permission", Area.PERMISSION, Effect.WRITE, Reach.OUTSIDE)
    DELETE_PERMISSION = ("delete_permission", Area.PERMISSION, Effect.WRITE, Reach.OUTSIDE)

    LIST_ENCRYPTION_KEYS = ("list_encryption_keys", Area.ENCRYPTION_KEY, Effect.READ, Reach.OUTSIDE)
    QUERY_ENCRYPTION_KEYS = ("query_encryption_keys", Area.ENCRYPTION_KEY, Effect.READ, Reach.OUTSIDE)
    CREATE_ENCRYPTION_KEY = ("create_encryption_key", Area.ENCRYPTION_KEY, Effect.WRITE, Reach.OUTSIDE)
    READ_ENCRYPTION_KEY = ("read_encryption_key", Area.ENCRYPTION_KEY, Effect.READ, Reach.OUTSIDE)
    REPLACE_ENCRYPTION_KEY = ("replace_encryption_key", Area.ENCRYPTION_KEY, Effect.WRITE, Reach.OUTSIDE)
    DELETE_ENCRYPTION_KEY = ("delete_encryption_key", Area.ENCRYPTION_KEY, Effect.WRITE, Reach.OUTSIDE)

    LIST_OFFERS = ("list_offers", Area.OFFER, Effect.READ, Reach.OUTSIDE)
    QUERY_OFFERS = ("query_offers", Area.OFFER, Effect.READ, Reach.OUTSIDE)
    READ_OFFER = ("read_offer", Area.OFFER, Effect.READ, Reach.OUTSIDE)
    REPLACE_OFFER = ("replace_offer", Area.OFFER, Effect.WRITE, Reach.OUTSIDE)

    READ_THROUGHPUT = ("read_throughput", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    REPLACE_THROUGHPUT = ("replace_throughput", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    READ_PARTITIONS = ("read_partitions", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    REDISTRIBUTE = ("redistribute", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    SPLIT = ("split", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    MERGE = ("merge", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    LIST_FAULTS = ("list_faults", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    ADD_FAULT = ("add_fault", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    CLEAR_FAULTS = ("clear_faults", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    READ_KEYS = ("read_keys", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    READ_FAULT = ("read_fault", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    DELETE_FAULT = ("delete_fault", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    LIST_WARNINGS = ("list_warnings", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    READ_BUSIEST = ("read_busiest", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    READ_OVERVIEW = ("read_overview", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    READ_LIVE = ("read_live", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    READ_HISTORY = ("read_history", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    READ_HEAT = ("read_heat", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    LIST_BACKUPS = ("list_backups", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    CREATE_BACKUP = ("create_backup", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    READ_BACKUP = ("read_backup", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    READ_WORKLOAD = ("read_workload", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    """Partition keys and ids of items: no more than whoever may read it could read from the items."""
    SWITCH_WORKLOAD = ("switch_workload", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    ADD_WORKLOAD = ("add_workload", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    DELETE_WORKLOAD = ("delete_workload", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    READ_ADVICE = ("read_advice", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    START_ADVICE = ("start_advice", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    """Reads items and the workload record at low priority, and leaves nothing but a report: no more than whoever may
    read both could work out alone."""
    CANCEL_ADVICE = ("cancel_advice", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    """For whoever may begin one: nothing of the account changes with it."""
    LIST_COPIES = ("list_copies", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    CREATE_COPY = ("create_copy", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    READ_COPY = ("read_copy", Area.ADMIN, Effect.READ, Reach.OUTSIDE)
    COMPLETE_COPY = ("complete_copy", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)
    CANCEL_COPY = ("cancel_copy", Area.ADMIN, Effect.WRITE, Reach.OUTSIDE)

    def __init__(self, word: str, area: Area, effect: Effect, reach: Reach) -> None:
        self.word = word
        self.area = area
        self.reach = reach
        self.writes = effect is Effect.WRITE
        self.is_item_operation = area is Area.ITEM
        self.is_admin = area in (Area.ADMIN, Area.OPEN)
        self.is_metadata = not (self.is_item_operation or self.is_admin or area is Area.ACCOUNT)
        """Whether the account's budget for requests on metadata pays for it."""
        self.kind = (
            word if self.is_item_operation else "admin" if self.is_admin else f"metadata_{effect.value}"
        )
        """What metrics and faults call it: operations on items each by their name, the others together."""
        self.recorded_as = _RECORDED[word].value if word in _RECORDED and self.is_item_operation else None
        """What it is in a workload record; None where it leaves none."""
