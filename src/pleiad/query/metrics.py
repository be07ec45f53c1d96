"""What one execution of a query did and how long it took, in the text of the query metrics header."""

from __future__ import annotations

from dataclasses import dataclass


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

    def to_header(self) -> str:
        """``name=value`` pairs between semicolons, none at the end."""
        pairs: tuple[tuple[str, int | float], ...] = (
            ("totalExecutionTimeInMs", self.total_execution_ms),
            ("queryCompileTimeInMs", self.query_compile_ms),
            ("queryLogicalPlanBuildTimeInMs", self.logical_plan_build_ms),
            ("queryPhysicalPlanBuildTimeInMs", self.physical_plan_build_ms),
            ("queryOptimizationTimeInMs", self.query_optimization_ms),
            ("VMExecutionTimeInMs", self.vm_execution_ms),
            ("indexLookupTimeInMs", self.index_lookup_ms),
            ("documentLoadTimeInMs", self.document_load_ms),
            ("systemFunctionExecuteTimeInMs", self.system_function_execute_ms),
            ("userFunctionExecuteTimeInMs", self.user_function_execute_ms),
            ("retrievedDocumentCount", self.retrieved_document_count),
            ("retrievedDocumentSize", self.retrieved_document_bytes),
            ("outputDocumentCount", self.output_document_count),
            ("outputDocumentSize", self.output_document_bytes),
            ("writeOutputTimeInMs", self.write_output_ms),
            ("indexUtilizationRatio", self.index_utilization_ratio),
        )
        return ";".join(
            f"{name}={value}" if isinstance(value, int) else f"{name}={value:.2f}" for name, value in pairs
        )
