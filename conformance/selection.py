"""Which tests of the official Python suite belong to which group.

A test may belong to several groups: the marker of the suite says where its authors run it, the file
says what it needs. No marker and no file leaves a test out: only its own name in `reasons.toml` does.
Pure functions of file, name and markers, so that the suite's own interpreter and ours agree.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Group:
    """A named part of the suite: a test is a member by marker, by file, or by file and name."""

    name: str
    meaning: str
    markers: tuple[str, ...] = ()
    file_patterns: tuple[str, ...] = ()
    name_patterns: tuple[str, ...] = ()
    name_file_patterns: tuple[str, ...] = ()

    def has(self, file: str, name: str, markers: Iterable[str]) -> bool:
        """Say whether the test of this file, function name and markers is a member."""
        if any(marker in self.markers for marker in markers):
            return True
        base = file.rsplit("/", 1)[-1]
        if _matches(base, self.file_patterns):
            return True
        return _matches(base, self.name_file_patterns) and _matches(name, self.name_patterns)


GROUPS: tuple[Group, ...] = (
    Group(
        name="foundation",
        meaning="account, databases, containers, items, sessions, keys, users and permissions",
        markers=("cosmosEmulator",),
        file_patterns=(
            "test_crud*.py",
            "test_encoding*.py",
            "test_resource_id*.py",
            "test_session*.py",
            "test_partition_key*.py",
            "test_user_configs*.py",
            "test_container_properties_cache*.py",
        ),
    ),
    Group(
        name="query",
        meaning="SQL queries in one and in many partitions",
        file_patterns=(
            "test_query.py",
            "test_query_async.py",
            "test_query_advisor*.py",
            "test_query_aggregate*.py",
            "test_query_cross_partition*.py",
            "test_query_execution_context*.py",
            "test_query_feed_range*.py",
            "test_query_response_headers*.py",
            "test_orderby*.py",
            "test_multi_orderby*.py",
            "test_aggregate*.py",
            "test_computed_properties*.py",
            "test_read_items*.py",
        ),
    ),
    Group(
        name="search",
        meaning="vector, full-text and hybrid search",
        markers=("cosmosSearchQuery",),
        file_patterns=(
            "test_vector_policy*.py",
            "test_full_text_policy*.py",
            "test_query_vector_similarity*.py",
            "test_query_hybrid_search*.py",
            "test_hybrid_search_aggregator*.py",
        ),
    ),
    Group(
        name="scripts",
        meaning="transactional batch, change feed, time to live, stored procedures, triggers, functions",
        file_patterns=(
            "test_transactional_batch*.py",
            "test_change_feed.py",
            "test_change_feed_async.py",
            "test_change_feed_all_versions*.py",
            "test_changefeed_partition_key_variation*.py",
            "test_ttl*.py",
        ),
        name_file_patterns=("test_crud*.py",),
        name_patterns=("*stored_procedure*", "*sproc*", "*trigger*", "*udf*"),
    ),
    Group(
        name="split",
        meaning="physical partitions that split while a client works, and throughput that scales",
        markers=("cosmosSplit",),
        file_patterns=(
            "test_auto_scale*.py",
            "test_latest_session_token*.py",
            "test_change_feed_split*.py",
            "test_partition_split_query*.py",
            "test_read_items_partition_split*.py",
            "test_pk_range_child_update_live*.py",
        ),
    ),
)

REST = Group(name="client", meaning="everything else: mostly the client's own unit tests")
GROUP_NAMES: tuple[str, ...] = (*(group.name for group in GROUPS), REST.name)


def groups_of(file: str, name: str, markers: Iterable[str]) -> tuple[str, ...]:
    """Return the names of all groups the test belongs to, at least one."""
    marker_names = frozenset(markers)
    found = tuple(group.name for group in GROUPS if group.has(file, name, marker_names))
    return found or (REST.name,)


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
