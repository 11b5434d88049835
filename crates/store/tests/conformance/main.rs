//! What every store must do, run against each of them. A case is a function; `suite!` makes a test of each.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod claims;
mod commits;
mod compared;
mod finding;
mod keeping;
mod letters;
mod lists;
mod memory;
mod places;
mod postgres;
mod registry;
mod sample;
mod sqlite;

mod cases {
    pub use crate::{claims::*, commits::*, finding::*, keeping::*, letters::*, lists::*, places::*, registry::*};
}

/// One test per case and backend. A case left off this list is dead code, and the linter says so.
macro_rules! suite {
    ($backend:ident, $open:expr, [$($case:ident),* $(,)?]) => {
        mod $backend {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (store, _kept) = $open;
                crate::cases::$case(&store).await;
            })*
        }
    };
}

macro_rules! suites {
    ($($backend:ident => $open:expr),* $(,)?) => {
        $(suite!($backend, $open, [
            a_commit_is_there_when_it_is_loaded_again,
            a_decision_on_an_older_version_is_refused_and_changes_nothing,
            a_refused_commit_of_a_batch_does_not_touch_the_others,
            a_run_is_made_once,
            a_unique_key_belongs_to_the_first_run_until_it_expires,
            a_change_of_grants_refuses_decisions_made_before_it,
            the_log_is_read_by_version_and_the_feed_by_position,
            an_attempt_is_rewritten_and_the_newest_is_loaded,
            values_are_found_by_number,
            many_writers_at_once_lose_nothing,
            a_run_is_made_only_as_its_first_version_and_with_a_head,
            what_never_changes_about_a_run_is_kept,
            a_commit_without_a_head_leaves_it_as_it_was,
            a_head_changes_the_definition_and_keeps_the_first_start,
            an_attempt_is_since_it_was_first_written_unless_that_was_only_pending,
            all_attempts_are_given_in_order,
            a_key_leads_to_the_run_that_holds_it,
            a_key_that_expired_leads_to_its_next_run,
            a_row_that_is_there_already_is_an_error_and_harms_no_other_commit,
            a_full_place_refuses_and_leaves_nothing_behind,
            a_run_refused_for_its_place_leaves_no_row_of_any_kind,
            an_older_run_in_the_queue_goes_first,
            a_younger_run_in_the_queue_holds_nobody_up,
            leaving_gives_up_the_place_or_the_queue_and_no_other_run_s,
            a_place_without_a_limit_is_always_given,
            a_run_that_takes_its_place_leaves_the_queue,
            a_place_taken_twice_is_one_place,
            the_first_of_each_queue_and_the_oldest_holder_are_known,
            no_two_claims_cover_one_attempt,
            claims_take_turns_between_organisations,
            work_is_born_claimed_and_orphaned_when_its_node_is_gone,
            claims_go_on_after_the_organisation_that_was_served_last,
            no_organisation_runs_more_than_its_share,
            an_attempt_gives_way_to_the_next_in_one_commit,
            what_is_claimed_is_held_until_it_is_removed,
            timers_come_due_in_order_and_are_cleared,
            mail_is_delivered_once_and_gone_when_it_was_read,
            mail_is_used_up_by_its_own_run_only,
            numbers_of_mail_are_not_used_again,
            notices_come_when_they_are_due_in_the_order_of_writing,
            a_notice_that_was_sent_is_gone_with_the_commit_that_says_so,
            what_is_stale_is_forgotten_and_the_rest_stays,
            a_changed_definition_is_a_new_version_and_an_equal_one_is_not,
            runs_are_listed_newest_first_by_page_and_filter,
            definitions_are_listed_by_name_in_their_newest_version,
            runs_of_all_versions_of_a_workflow_are_listed_together,
            a_test_definition_is_never_found_by_name_or_listed,
            a_test_definition_goes_with_its_run_and_its_number_is_not_used_again,
            purge_goes_in_pieces_and_spares_what_is_kept,
            purge_takes_all_that_is_the_run_s_own,
            a_purge_that_stops_anywhere_goes_on,
            what_a_purge_would_remove_is_known_before,
            only_a_finished_run_can_be_made_to_expire,
            a_position_is_never_used_twice,
            rows_are_counted_by_table,
            nothing_is_wrong_with_the_data_after_every_kind_of_write,
            a_record_is_found_by_its_id_and_by_its_key,
            ids_and_keys_are_unique_among_their_kind,
            a_record_is_replaced_only_at_the_version_it_was_read_at,
            a_record_stays_with_its_organisation,
            a_removed_record_is_gone_and_its_names_are_free,
            the_parts_of_a_change_see_what_came_before_them,
            a_refused_change_leaves_nothing_of_itself,
            a_change_of_rights_refuses_decisions_made_before_it,
            records_are_listed_by_key_page_prefix_and_organisation,
            records_come_due_soonest_first,
            of_many_who_change_a_record_one_comes_first,
            the_audit_trail_is_read_newest_first_by_page_and_filter,
            each_organisation_s_audit_trail_is_a_chain_of_its_own,
            a_commit_is_in_the_audit_trail_only_if_it_was_applied,
            organisations_are_founded_once_by_name,
            only_applied_commits_count,
            many_who_count_at_once_lose_nothing,
            runs_that_have_not_ended_are_counted_by_organisation,
            runs_are_found_by_all_of_their_labels,
            other_labels_replace_the_ones_before,
            labels_go_with_their_run,
            a_run_that_was_refused_has_no_labels,
            runs_are_found_by_part_of_their_text,
            runs_are_filtered_by_any_of_several_statuses_by_creator_and_by_time,
            open_gates_are_listed_until_they_are_answered,
            only_a_finished_run_s_payloads_are_erased_and_its_log_stays,
            a_workflow_is_found_by_name_and_by_id_until_its_life_ends,
            runs_of_a_workflow_that_is_gone_are_still_listed,
            versions_of_tests_are_nobody_s,
            a_version_and_what_comes_with_it_are_written_together_or_not_at_all,
            the_position_is_that_of_the_newest_commit,
        ]);)*
    };
}

suites! {
    on_memory => crate::memory::fresh(),
    on_sqlite => crate::sqlite::fresh(),
    on_postgres => crate::postgres::fresh().await,
}
