"""What one execution of a query did and how long it took."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST_MS = 0.01
"""The shortest time that is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMetrics:
    """Times in milliseconds, counts of items, sizes in bytes.

    Retrieved are the items whose bodies were loaded, none when an index alone gave the answer; output are the
    rows of the result. The ratio is the part of the retrieved items that passed the filter.
    """

    total_execution_ms: float = 0.0
    query_compile_ms: float = 0.0
    logical_plan_build_ms: float = 0.0
    physical_plan_build_ms: float = 0.0
    query_optimization_ms: float = 0.0
    vm_execution_ms: float = 0.0
    index_lookup_ms: float = 0.0
    document_load_ms: float = 0.0
    system_function_execute_ms: float = 0.0
    user_function_execute_ms: float = 0.0
    retrieved_document_count: int = 0
    retrieved_document_bytes: int = 0
    output_document_count: int = 0
    output_document_bytes: int = 0
    write_output_ms: float = 0.0
    index_utilization_ratio: float = 0.0

    @classmethod
    def of_page(
        cls,
        *,
        prepared_ms: float,
        run_ms: float,
        loaded: int,
        loaded_bytes: int,
        output: int,
        output_bytes: int,
    ) -> QueryMetrics:
        """The metrics of a page from what is measured of it.

        Measured are the preparation and the run. How each divides is an estimate: the preparation in fixed parts, and
        half of the run over loading and output by the bytes of both; what is done is never shown as no time at all.
        """
        moved_bytes = max(1, loaded_bytes + output_bytes)
        load_ms = max(_LEAST_MS, run_ms / 2 * loaded_bytes / moved_bytes) if loaded else 0.0
        output_ms = max(_LEAST_MS, run_ms / 2 * output_bytes / moved_bytes) if output else 0.0
        prepared_ms = max(4 * _LEAST_MS, prepared_ms)
        vm_ms = max(run_ms, load_ms + output_ms + _LEAST_MS)
        return cls(
            total_execution_ms=prepared_ms + vm_ms,
            query_compile_ms=prepared_ms * 0.4,
            logical_plan_build_ms=prepared_ms * 0.3,
            physical_plan_build_ms=prepared_ms * 0.2,
            query_optimization_ms=prepared_ms * 0.1,
            vm_execution_ms=vm_ms,
            document_load_ms=load_ms,
            write_output_ms=output_ms,
            retrieved_document_count=loaded,
            retrieved_document_bytes=loaded_bytes,
            output_document_count=output,
            output_document_bytes=output_bytes,
            index_utilization_ratio=min(1.0, output / loaded) if loaded else 1.0,
        )
