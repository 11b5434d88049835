//! The conformance suite, run against every store. A case is a function; `suite!` turns each into a test.

// In a test a panic reports the failure.
#![allow(clippy::unwrap_used)]

mod claims;
mod commits;
mod definitions;
mod differential;
mod evidence;
mod groups;
mod mail;
mod memory;
mod pages;
mod postgres;
mod registry;
mod retention;
mod sample;
mod search;
mod sqlite;
mod trees;
mod upgrades;

mod cases {
    pub use crate::{claims::*, commits::*, definitions::*, evidence::*, groups::*, mail::*, pages::*};
    pub use crate::{registry::*, retention::*, search::*, trees::*};
}

/// One test per case and backend. A case left off this list is dead code, which the linter reports.
macro_rules! suite {
    ($backend:ident, $open:expr, [$($case:ident),* $(,)?]) => {
        mod $backend {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (store, _guard) = $open;
                crate::cases::$case(&store).await;
            })*
        }
    };
}

macro_rules! suites {
    ($($backend:ident => $open:expr),* $(,)?) => {
        $(suite!($backend, $open, [
            a_loaded_run_contains_what_was_committed,
            a_commit_on_an_older_version_is_refused_and_changes_nothing,
            a_refused_commit_does_not_affect_the_rest_of_its_batch,
            a_run_is_created_once,
            a_unique_key_belongs_to_the_first_run_until_it_expires,
            a_change_of_grants_refuses_decisions_made_before_it,
            the_log_is_read_by_version_and_the_feed_by_position,
            the_feed_of_an_organisation_has_its_rows_only,
            the_secret_of_a_run_is_found_by_its_public_id,
            an_attempt_is_rewritten_and_the_newest_is_loaded,
            a_run_with_more_payloads_than_one_answer_holds_is_loaded,
            runs_are_read_with_no_more_payloads_than_fit,
            values_are_returned_by_id,
            concurrent_commits_lose_nothing,
            a_run_is_created_only_at_its_first_version_and_with_a_head,
            immutable_fields_of_a_run_are_stored,
            a_commit_without_a_head_keeps_the_head,
            a_head_changes_the_definition_and_keeps_the_first_start,
            since_is_when_an_attempt_was_first_written_unless_it_was_pending,
            all_attempts_are_returned_in_order,
            a_unique_key_returns_the_run_that_holds_it,
            an_expired_unique_key_returns_its_next_run,
            a_duplicate_row_is_an_error_and_does_not_affect_other_commits,
            a_full_group_refuses_the_run_and_leaves_nothing_behind,
            a_run_refused_by_its_group_leaves_no_rows,
            an_older_queued_run_goes_first,
            a_younger_queued_run_does_not_block_an_older_one,
            leaving_affects_only_the_run_s_own_slot_or_queue_entry,
            a_group_without_a_limit_is_never_full,
            a_run_that_enters_a_group_leaves_its_queue,
            entering_a_group_twice_takes_one_slot,
            the_first_of_each_queue_and_the_oldest_holder_are_returned,
            no_two_claims_cover_one_attempt,
            claims_take_turns_between_organisations,
            work_is_claimed_at_commit_and_orphaned_when_its_node_is_gone,
            claims_continue_after_the_organisation_served_last,
            no_organisation_exceeds_its_limit_of_claimed_attempts,
            organisations_that_execute_the_fewest_attempts_come_first,
            an_attempt_is_replaced_by_the_next_in_one_commit,
            claimed_work_is_held_until_it_is_removed,
            timers_come_due_in_order_and_are_cleared,
            mail_is_delivered_once_and_removed_when_read,
            mail_is_consumed_only_by_its_own_run,
            mail_ids_are_not_reused,
            a_message_repeated_by_the_commit_that_reads_it_is_not_kept,
            due_notices_are_returned_in_write_order,
            a_sent_notice_is_removed_by_the_commit_that_reports_it,
            stale_rows_are_removed_and_the_rest_stays,
            a_changed_definition_is_a_new_version_and_an_equal_one_is_not,
            runs_are_listed_newest_first_by_page_and_filter,
            definitions_are_listed_by_name_in_their_newest_version,
            runs_of_all_versions_of_a_workflow_are_listed_together,
            a_test_definition_is_never_found_by_name_or_listed,
            a_test_definition_is_removed_with_its_run_and_its_id_is_not_reused,
            purge_works_in_pieces_and_keeps_runs_under_retention,
            purge_removes_all_rows_of_the_run,
            an_interrupted_purge_continues,
            purgeable_runs_are_counted_before_a_purge,
            the_backlog_counts_what_waits,
            only_a_finished_run_can_expire,
            positions_are_never_reused,
            rows_are_counted_by_table,
            the_integrity_check_passes_after_every_kind_of_write,
            tallies_hold_when_some_commits_of_a_batch_are_refused,
            tallies_hold_after_a_change_of_key_and_a_refused_one,
            a_record_is_found_by_its_id_and_by_its_key,
            ids_and_keys_are_unique_within_their_kind,
            a_record_is_replaced_only_at_the_version_it_was_read_at,
            a_record_stays_with_its_organisation,
            a_removed_record_frees_its_id_and_key,
            each_part_of_a_change_sees_the_earlier_parts,
            a_refused_change_leaves_nothing_behind,
            a_change_of_rights_refuses_decisions_made_before_it,
            records_are_listed_by_key_page_prefix_and_organisation,
            due_records_are_returned_soonest_first,
            only_one_of_many_concurrent_changes_of_a_record_wins,
            the_audit_trail_is_read_newest_first_by_page_and_filter,
            each_organisation_has_its_own_audit_hash_chain,
            a_commit_is_in_the_audit_trail_only_if_it_was_applied,
            organisation_names_are_unique,
            only_applied_commits_add_to_counters,
            concurrent_counting_loses_nothing,
            unfinished_runs_are_counted_per_organisation,
            runs_are_found_by_all_of_their_labels,
            new_labels_replace_the_old_ones,
            labels_are_removed_with_their_run,
            a_refused_run_leaves_no_labels,
            runs_are_found_by_substring,
            runs_are_filtered_by_any_of_several_statuses_by_creator_and_by_time,
            open_gates_are_listed_until_they_are_answered,
            only_a_finished_run_s_payloads_are_erased_and_its_log_stays,
            a_workflow_is_found_by_name_and_by_id_until_it_is_deleted,
            a_deleted_workflow_is_found_and_restored_while_its_name_is_free,
            runs_of_a_deleted_workflow_are_still_listed,
            test_definitions_are_not_listed_as_versions,
            a_version_and_its_change_are_written_together_or_not_at_all,
            progress_is_the_position_of_the_newest_commit,
            all_mailboxes_are_found_by_page,
            all_due_notices_are_found_by_page_and_by_run,
            all_queues_are_found_by_page,
            all_orphans_are_found_by_page,
            descendants_are_counted_by_root_and_limited,
            concurrent_children_do_not_exceed_the_limit_of_descendants,
            a_full_plan_lets_each_run_have_one_child_at_a_time,
            a_scheduled_run_counts_as_open_once_it_is_due,
            the_count_of_descendants_goes_with_its_root,
            an_expired_unique_key_is_not_found,
        ]);)*
    };
}

suites! {
    on_memory => crate::memory::fresh(),
    on_sqlite => crate::sqlite::fresh(),
    on_postgres => crate::postgres::fresh().await,
}
