"""Every number of the partitioning documents and the service quotas, as one profile.

Three profiles are built in: ``default`` (today's service), ``2018`` (the figures of the 2018 article) and
``tiny`` (the shape of ``default`` a million times smaller, so that a test fills a "20 GB" logical partition
with 20 KB). A TOML file that names a profile to start from and the numbers to change is a profile too:

    profile = "default"
    logical_partition_bytes = 1_000_000

Messages that quote a limit take it from here, so they follow the profile in force.
"""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path

KB = 1024
MB = 1024 * KB
GB = 1024 * MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """One profile of limits; units stand last in each name."""

    # logical and physical partitions
    logical_partition_bytes: int = 20 * GB
    physical_partition_bytes: int = 50 * GB
    physical_partition_ru: int = 10_000
    manual_sizing_ru: int = 6_000
    partition_key_levels: int = 3
    partition_key_bytes_v1: int = 2048
    """As the service takes them; its hash sees the first 101 bytes alone, so 101 here is the strict setting."""
    partition_key_bytes_v2: int = 2048

    # throughput
    throughput_ru_min: int = 400
    throughput_ru_max: int = 1_000_000
    throughput_ru_step: int = 100
    throughput_ru_default: int = 400
    autoscale_ru_min: int = 1_000
    autoscale_ru_step: int = 1_000
    throughput_ru_per_gb: int = 1
    throughput_ever_divisor: int = 100
    autoscale_ru_per_gb: int = 10
    autoscale_ever_divisor: int = 10
    shared_database_containers: int = 25
    shared_container_ru: int = 100
    shared_container_autoscale_ru: int = 1_000
    serverless_partition_ru: int = 5_000
    burst_partition_ru: int = 3_000
    burst_seconds: int = 300
    throughput_buckets: int = 5
    throughput_bucket_change_seconds: int = 600
    split_notice_seconds: float = 0.25
    redistribution_partitions: int = 20
    redistributions_per_minute: int = 5
    account_throughput_ru: int = 0
    metadata_ru: int = 24_000

    # fixed containers, which have one physical partition for ever; 0 bytes: there are none
    fixed_container_bytes: int = 0
    fixed_container_ru: int = 10_000
    fixed_below_ru: int = 0

    # resources
    databases_and_containers: int = 500
    name_length: int = 255
    unique_keys_per_container: int = 10
    unique_key_paths: int = 16
    index_paths: int = 1_500
    composite_index_paths: int = 8
    composite_indexes: int = 100
    computed_properties: int = 20
    vector_dimensions: int = 4_096
    ttl_seconds_max: int = 2_147_483_647
    change_feed_retention_minutes_max: int = 43_200

    # items and requests
    item_bytes: int = 2 * MB
    item_id_bytes: int = 1023
    item_depth: int = 128
    request_bytes: int = 4 * MB
    response_bytes: int = 4 * MB
    page_items: int = 100
    page_items_max: int = 1000
    batch_operations: int = 100
    batch_bytes: int = 2_202_010  # 2.1 MB: items of 2 MB with what clients wrap them in
    patch_operations: int = 10
    operation_seconds: float = 5.0

    # queries
    query_text_bytes: int = 256 * KB
    query_joins: int = 10
    query_udfs: int = 10
    query_in_items: int = 16_000
    query_conditions: int = 2_000
    query_nesting: int = 128
    query_memory_bytes: int = 64 * MB
    queries_memory_bytes: int = 128 * MB
    query_cache_bytes: int = 48 * MB
    continuation_kb: int = 16

    # scripts
    stored_procedures: int = 100
    triggers: int = 25
    user_defined_functions: int = 50
    script_bytes: int = 512 * KB
    script_memory_bytes: int = 64 * MB
    script_stack_bytes: int = 512 * KB
    script_log_chars: int = 2_000
    script_ru: int = 10_000
    script_processes: int = 4

    # authentication
    clock_skew_minutes: int = 15
    resource_token_seconds_min: int = 10
    resource_token_seconds_max: int = 86_400
    resource_token_seconds_default: int = 3_600
    handover_seconds: int = 600
    handover_tries_per_minute: int = 10

    # what is remembered for who looks on
    history_containers: int = 200

    # workload records
    workload_bytes: int = 1 * GB
    workload_container_bytes: int = 64 * MB
    workload_record_bytes: int = 16 * KB
    workload_pending: int = 50_000
    workload_pending_bytes: int = 32 * MB

    # advice on partition keys
    advice_seconds: float = 3_600.0
    advice_memory_bytes: int = 2 * GB
    advice_items: int = 1_000_000

    # connections
    header_bytes: int = 64 * KB
    connections: int = 10_000
    connections_per_address: int = 5_000
    descriptors_reserved: int = 4_096
    open_segments: int = 512
    heads_bytes: int = 16 * MB
    bodies_bytes: int = 64 * MB
    unsent_bytes: int = 128 * MB
    idle_seconds: float = 120.0
    request_read_seconds: float = 30.0
    direct_requests: int = 64
    direct_discarded_bytes: int = 64 * MB

    def for_one_of(self, workers: int) -> Limits:
        """What one of so many worker processes may take, so that all together take what one process would."""
        return dataclasses.replace(
            self,
            connections=max(1, self.connections // workers),
            connections_per_address=max(1, self.connections_per_address // workers),
            heads_bytes=self.heads_bytes // workers,
            bodies_bytes=self.bodies_bytes // workers,
            unsent_bytes=self.unsent_bytes // workers,
            queries_memory_bytes=max(self.query_memory_bytes, self.queries_memory_bytes // workers),
            script_processes=max(1, self.script_processes // workers),
        )

    @property
    def logical_partition_text(self) -> str:
        """The size of a logical partition as messages name it."""
        return size_text(self.logical_partition_bytes)


def size_text(size_bytes: float) -> str:
    """A size with three digits at most, such as ``20 GB``, ``1.9 MB`` or ``812 bytes``."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} bytes"
    value, unit = size_bytes / KB, "KB"
    for larger in ("MB", "GB", "TB"):
        if value >= 1000:
            value, unit = value / 1024, larger
    return f"{value:,.0f} {unit}" if value >= 100 else f"{round(value, 1):g} {unit}"


PROFILES: dict[str, Limits] = {
    "default": Limits(),
    "2018": Limits(
        logical_partition_bytes=10 * GB,
        physical_partition_bytes=10 * GB,
        throughput_ru_max=100_000,
        manual_sizing_ru=10_000,
        fixed_container_bytes=10 * GB,
        fixed_below_ru=1_000,
    ),
    "tiny": Limits(
        logical_partition_bytes=20 * KB,
        physical_partition_bytes=50 * KB,
    ),
}


def load(name_or_path: str) -> Limits:
    """The built-in profile of that name, or the profile in that TOML file.

    Raises ValueError with a sentence for the operator when there is no such profile or a name in it is unknown.
    """
    if name_or_path in PROFILES:
        return PROFILES[name_or_path]
    path = Path(name_or_path)
    if not path.is_file():
        raise ValueError(
            f"there is no limits profile or file '{name_or_path}' (profiles: {', '.join(PROFILES)})"
        )
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"the limits file {path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    base = values.pop("profile", "default")
    if not isinstance(base, str) or base not in PROFILES:
        raise ValueError(f"{path}: there is no profile '{base}' to start from")
    known = {field.name: field for field in dataclasses.fields(Limits)}
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"{path}: there is no limit '{name}'")
        wanted = (int, float) if known[name].type == "float" else (int,)
        if not isinstance(value, wanted) or isinstance(value, bool) or value < 0:
            kind = "number" if known[name].type == "float" else "whole number"
            raise ValueError(f"{path}: '{name}' must be a {kind} that is not negative")
    return dataclasses.replace(PROFILES[base], **values)
