//! What every store must do, run against each of them. A case is a function in `cases`; `suite!` makes a test of each.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod cases;
mod sample;
mod sqlite;

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
            a_counter_over_its_limit_refuses_and_leaves_nothing_behind,
            a_change_of_grants_refuses_decisions_made_before_it,
            no_two_claims_cover_one_attempt,
            claims_take_turns_between_organisations,
            work_is_born_claimed_and_orphaned_when_its_node_is_gone,
            timers_come_due_in_order_and_are_cleared,
            mail_is_delivered_once_and_gone_when_it_was_read,
            the_log_is_read_by_version_and_the_feed_by_position,
            an_attempt_is_rewritten_and_the_newest_is_loaded,
            values_are_found_by_number,
            a_changed_definition_is_a_new_version_and_an_equal_one_is_not,
            runs_are_listed_newest_first_by_page_and_filter,
            purge_goes_in_pieces_and_spares_what_is_kept,
            many_writers_at_once_lose_nothing,
        ]);)*
    };
}

suites! { on_sqlite => crate::sqlite::fresh() }
