//! Drawings as they look in a terminal.

use super::super::samples;
use super::*;

fn check(drawing: &Outline, expected: &str) {
    let drawn = render(drawing);
    let expected = expected.trim_start_matches('\n');
    assert_eq!(drawn, format!("{}\n\n{expected}", drawing.name), "\n{drawn}");
}

#[test]
fn a_chain_is_one_straight_line() {
    check(
        &samples::three(),
        "
┌────────────────────┐
│ fetch              │
│ http · GET /orders │
└──────────┬─────────┘
           ▼
    ┌────────────┐
    │ transform  │
    │ javascript │
    └──────┬─────┘
           ▼
 ┌──────────────────┐
 │ store            │
 │ tool · db.insert │
 └──────────────────┘
",
    );
}

#[test]
fn a_diamond_splits_and_joins() {
    check(
        &samples::diamond(),
        "
              ┌───────┐
              │ start │
              └───┬───┘
        ┌─────────┴────────┐
        ▼                  ▼
┌───────────────┐  ┌───────────────┐
│ left          │  │ right         │
│ http · GET /a │  │ http · GET /b │
└───────┬───────┘  └───────┬───────┘
        └─────────┬────────┘
                  ▼
       ┌────────────────────┐
       │ join               │
       │ javascript · merge │
       └────────────────────┘
",
    );
}

#[test]
fn a_label_stands_in_the_line_it_names() {
    check(
        &samples::order_processing(),
        "
                      ┌─────────────────────┐
                      │ charge              │
                      │ http · POST /charge │
                      └──────────┬──────────┘
          ┌──────────────────────┼─────────────────────┐
          │                      │                   error
          ▼                      ▼                     ▼
┌───────────────────┐  ┌───────────────────┐  ┌────────────────┐
│ send-receipt      │  │ notify-warehouse  │  │ handle-failure │
│ tool · email.send │  │ http · POST /pick │  │ javascript     │
└───────────────────┘  └───────────────────┘  └────────────────┘
",
    );
}

#[test]
fn a_scope_is_a_titled_frame_around_its_body() {
    check(
        &samples::nested(),
        "
          ┌───────────────────┐
          │ list              │
          │ http · GET /users │
          └─────────┬─────────┘
                    ▼
┌─ for_each each · users ───────────────┐
│           ┌──────────────────┐        │
│           │ load             │        │
│           │ http · GET /user │        │
│           └─────────┬────────┘        │
│           ┌─────────┴─────────┐       │
│           ▼                   ▼       │
│ ┌───────────────────┐  ┌────────────┐ │
│ │ mail              │  │ log        │ │
│ │ tool · email.send │  │ javascript │ │
│ └───────────────────┘  └────────────┘ │
└───────────────────┬───────────────────┘
                    ▼
           ┌────────────────┐
           │ report         │
           │ approval · ops │
           └────────────────┘
",
    );
}

#[test]
fn a_loop_notes_where_its_back_edge_goes() {
    check(
        &samples::polling(),
        "
  ┌──────────────────┐
  │ submit           │
  │ http · POST /job │
  └─────────┬────────┘
            ▼
┌─ loop poll · max 10 ─┐
│          ▼           │
│ ┌─────────────────┐  │
│ │ check           │  │
│ │ http · GET /job │  │
│ └────────┬────────┘  │
│          ▼           │
│   ┌─────────────┐    │
│   │ wait        │    │
│   │ sleep · 30s │    │
│   └──────┬──────┘    │
│   ↺ back to poll     │
└───────────┬──────────┘
            ▼
        ┌──────┐
        │ done │
        │ end  │
        └──────┘
",
    );
}

#[test]
fn edges_that_swap_sides_pass_over_each_other() {
    let mut drawing = samples::chain(4);
    drawing.edges = [(0, 2), (0, 3), (1, 2)].map(|(from, to)| samples::edge(from, to, "")).to_vec();
    drawing.edges.push(samples::edge(1, 3, "no"));
    check(
        &drawing,
        "
┌────────┐     ┌────────┐
│ step-0 │     │ step-1 │
│ http   │     │ http   │
└────┬───┘     └────┬───┘
   ┌─┴─────┐  ┌─────┴─┐
   │       │  │      no
   └──┬────│──┘       │
      │    └──────┬───┘
      ▼           ▼
 ┌────────┐  ┌────────┐
 │ step-2 │  │ step-3 │
 │ http   │  │ http   │
 └────────┘  └────────┘
",
    );
}

#[test]
fn edges_back_without_a_scope_end_in_a_note() {
    let mut drawing = samples::chain(2);
    drawing.edges.push(samples::back(1, 0));
    drawing.edges.push(samples::edge(1, 1, "again"));
    check(
        &drawing,
        "
            ┌────────┐
            │ step-0 │
            │ http   │
            └────┬───┘
                 ▼
            ┌────────┐
            │ step-1 │
            │ http   │
            └────┬───┘
        ┌────────┴────────┐
        │               again
↺ back to step-0  ↺ back to step-1
",
    );
}

#[test]
fn boxes_of_wide_and_long_names_keep_their_sides() {
    let mut drawing = samples::chain(2);
    drawing.nodes[0].name = "注文を処理する 🚀".to_owned();
    drawing.nodes[1].name = "a-name-that-goes-on-and-on-and-on-and-on".to_owned();
    drawing.nodes[1].detail = "\u{1b}[2J\ttwo\nlines".to_owned();
    check(
        &drawing,
        "
        ┌───────────────────┐
        │ 注文を処理する 🚀 │
        │ http              │
        └─────────┬─────────┘
                  ▼
┌──────────────────────────────────┐
│ a-name-that-goes-on-and-on-and-… │
│ http · �[2J two lines            │
└──────────────────────────────────┘
",
    );
}

#[test]
fn what_is_too_wide_becomes_a_list() {
    let drawn = render(&samples::fan(60));
    assert!(drawn.starts_with("fan\n\n(too wide to draw as text"), "{drawn}");
    assert!(drawn.contains("\nsplit (condition)\n  → part-1, part-2,"), "{drawn}");
}

#[test]
fn no_line_ends_in_a_blank_or_is_wider_than_allowed() {
    for seed in 0..40 {
        let drawn = render(&samples::random(seed, 2 + seed as usize % 25));
        for line in drawn.lines() {
            assert_eq!(line.trim_end(), line, "seed {seed}");
            assert!(columns(line) <= MOST_COLUMNS, "seed {seed}");
        }
    }
}
