//! The server from outside: the real binary, real sockets, and what somebody who means no good would try.
//!
//! Each test has a data directory and a server of its own. What workflows call is a server of the test on this machine.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod access;
mod agent;
mod answers;
mod approvals;
mod bulk;
mod callbacks;
mod canary;
mod codes;
mod crash;
mod dashboard;
mod description;
mod documents;
mod edges;
mod first_try;
mod fuzz;
mod harness;
mod hooks;
mod links;
mod lists;
mod mcp;
mod nodes;
mod notifications;
mod outside;
mod policies;
mod postbox;
mod promises;
mod queries;
mod raw;
mod records;
mod requests;
mod schedules;
mod schemas;
mod secrets;
mod seed;
mod session;
mod stdio;
mod tenants;
mod trees;
mod warnings;
mod web;
mod whole;
mod wire;
