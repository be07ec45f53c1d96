"""Reports on a query as clients read them in headers: query metrics, index metrics and query advice."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote

from pleiad.query.advice import Advice
from pleiad.query.index_use import ENTRIES_MAX, CompositeIndex, IndexUse, SingleIndex
from pleiad.query.metrics import QueryMetrics

HEADER_CHARS_MAX: Final = 5_000
"""Clients refuse lines of headers that are much longer, and ask again."""
_SURROGATE: Final = re.compile("[\\ud800-\\udfff]")


def metrics_header(metrics: QueryMetrics) -> str:
    """``name=value`` pairs between semicolons, none at the end."""
    pairs: tuple[tuple[str, int | float], ...] = (
        ("totalExecutionTimeInMs", metrics.total_execution_ms),
        ("queryCompileTimeInMs", metrics.query_compile_ms),
        ("queryLogicalPlanBuildTimeInMs", metrics.logical_plan_build_ms),
        ("queryPhysicalPlanBuildTimeInMs", metrics.physical_plan_build_ms),
        ("queryOptimizationTimeInMs", metrics.query_optimization_ms),
        ("VMExecutionTimeInMs", metrics.vm_execution_ms),
        ("indexLookupTimeInMs", metrics.index_lookup_ms),
        ("documentLoadTimeInMs", metrics.document_load_ms),
        ("systemFunctionExecuteTimeInMs", metrics.system_function_execute_ms),
        ("userFunctionExecuteTimeInMs", metrics.user_function_execute_ms),
        ("retrievedDocumentCount", metrics.retrieved_document_count),
        ("retrievedDocumentSize", metrics.retrieved_document_bytes),
        ("outputDocumentCount", metrics.output_document_count),
        ("outputDocumentSize", metrics.output_document_bytes),
        ("writeOutputTimeInMs", metrics.write_output_ms),
        ("indexUtilizationRatio", metrics.index_utilization_ratio),
    )
    return ";".join(
        f"{name}={value}" if isinstance(value, int) else f"{name}={value:.2f}" for name, value in pairs
    )


def advice_header(found: Sequence[Advice]) -> str:
    """The advice as percent-encoded JSON."""
    entries = [{"Id": each.id, "Params": list(each.params)} for each in found]
    return quote(json.dumps(entries, separators=(",", ":")), safe="")


def index_header_v1(use: IndexUse) -> str:
    """The first wire format: base64 of JSON with one list for each kind."""
    return _bounded(use, _v1)


def index_header_v2(use: IndexUse) -> str:
    """The second wire format: percent-encoded JSON, with a score only where an index is missing."""
    return _bounded(use, _v2)


def _bounded(use: IndexUse, written: Callable[[IndexUse], str]) -> str:
    """The text of a report with as many entries in each list as clients can read in a header."""
    entries = ENTRIES_MAX
    while len(text := written(use)) > HEADER_CHARS_MAX and entries:
        entries //= 2
        use = IndexUse(
            use.utilized_single[:entries],
            use.potential_single[:entries],
            use.utilized_composite[:entries],
            use.potential_composite[:entries],
        )
    return text


def _v1(use: IndexUse) -> str:
    document = {
        "UtilizedSingleIndexes": [_single_v1(each) for each in use.utilized_single],
        "PotentialSingleIndexes": [_single_v1(each) for each in use.potential_single],
        "UtilizedCompositeIndexes": [_composite_v1(each) for each in use.utilized_composite],
        "PotentialCompositeIndexes": [_composite_v1(each) for each in use.potential_composite],
    }
    return base64.b64encode(_json(document).encode()).decode("ascii")


def _v2(use: IndexUse) -> str:
    document = {
        "UtilizedIndexes": {
            "SingleIndexes": [{"IndexSpec": each.spec} for each in use.utilized_single],
            "CompositeIndexes": [{"IndexSpecs": list(each.specs)} for each in use.utilized_composite],
        },
        "PotentialIndexes": {
            "SingleIndexes": [
                {"IndexSpec": each.spec, "IndexImpactScore": each.impact} for each in use.potential_single
            ],
            "CompositeIndexes": [
                {"IndexSpecs": list(each.specs), "IndexImpactScore": "High"}
                for each in use.potential_composite
            ],
        },
    }
    return quote(_json(document), safe="")


def _json(document: object) -> str:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    # A name may hold a lone surrogate, which has an escape in JSON but no UTF-8.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _single_v1(index: SingleIndex) -> dict[str, object]:
    return {
        "FilterExpression": "",
        "IndexSpec": index.spec,
        "FilterPreciseSet": index.is_precise,
        "IndexPreciseSet": index.is_precise,
        "IndexImpactScore": index.impact,
    }


def _composite_v1(index: CompositeIndex) -> dict[str, object]:
    return {"IndexSpecs": list(index.specs), "IndexPreciseSet": False, "IndexImpactScore": "High"}
