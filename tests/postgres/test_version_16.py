"""What tests of the source say of the newest version, said of an older one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.server import Upstream
from tests.postgres.test_random import test_random_transactions
from tests.postgres.test_rights import reader, test_rights_to_read_are_asked_for
from tests.postgres.test_source import (
    test_a_number_that_does_not_fit_stops_its_table_and_no_other,
    test_a_snapshot_and_what_comes_after_it,
    test_definitions_that_change_stop_a_table_and_new_ones_do_not,
    test_names_options_and_what_is_shown_of_them,
    test_values_of_all_types_arrive_in_a_snapshot_as_in_the_stream,
    test_values_that_were_left_out_and_truncated_tables,
    test_what_is_lost_is_said_and_nothing_wrong_is_shown,
)
from tests.postgres.test_unseen_changes import (
    test_a_publication_that_was_altered_and_altered_back_is_noticed,
    test_a_table_that_alter_table_writes_anew_stops,
    test_other_names_for_values_of_an_enum_stop_their_table,
    test_other_new_files_of_a_table_do_not_stop_it,
)

__all__ = [
    "reader",
    "test_a_number_that_does_not_fit_stops_its_table_and_no_other",
    "test_a_publication_that_was_altered_and_altered_back_is_noticed",
    "test_a_snapshot_and_what_comes_after_it",
    "test_a_table_that_alter_table_writes_anew_stops",
    "test_definitions_that_change_stop_a_table_and_new_ones_do_not",
    "test_names_options_and_what_is_shown_of_them",
    "test_other_names_for_values_of_an_enum_stop_their_table",
    "test_other_new_files_of_a_table_do_not_stop_it",
    "test_random_transactions",
    "test_rights_to_read_are_asked_for",
    "test_values_of_all_types_arrive_in_a_snapshot_as_in_the_stream",
    "test_values_that_were_left_out_and_truncated_tables",
    "test_what_is_lost_is_said_and_nothing_wrong_is_shown",
]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    found = Upstream(16)
    yield found
    found.close()
