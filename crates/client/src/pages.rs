//! Lists, page by page.

use crate::{ATTEMPTS, Call, Client, Error, Page};
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::marker::PhantomData;

/// The entries of a list. The next page is fetched when it is needed.
///
/// ```no_run
/// # async fn example(stepwell: stepwell_client::Client) -> Result<(), stepwell_client::Error> {
/// let mut runs = stepwell.runs(Default::default());
/// while let Some(run) = runs.next().await? {
///     println!("{} {}", run.run_id, run.status);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Pages<'a, T> {
    client: &'a Client,
    path: Vec<String>,
    filters: Vec<(&'static str, String)>,
    fetched: VecDeque<T>,
    cursor: Option<String>,
    is_last: bool,
    entry: PhantomData<T>,
}

impl<'a, T: DeserializeOwned> Pages<'a, T> {
    pub(crate) fn new(client: &'a Client, path: &[&str], filters: Vec<(&'static str, String)>) -> Pages<'a, T> {
        let path = path.iter().map(|part| part.to_string()).collect();
        let (fetched, entry) = (VecDeque::new(), PhantomData);
        Pages { client, path, filters, fetched, cursor: None, is_last: false, entry }
    }

    /// The next entry, if there is one.
    pub async fn next(&mut self) -> Result<Option<T>, Error> {
        while self.fetched.is_empty() && !self.is_last {
            let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
            let mut call = Call::get(&path).attempts(ATTEMPTS).query("cursor", self.cursor.as_ref());
            call.query.extend(self.filters.iter().cloned());
            let page: Page<T> = self.client.body(call).await?;
            self.fetched.extend(page.data);
            self.is_last = page.next.is_none();
            self.cursor = page.next;
        }
        Ok(self.fetched.pop_front())
    }

    /// The size of a page.
    pub fn limit(mut self, entries: u32) -> Pages<'a, T> {
        self.filters.retain(|(name, _)| *name != "limit");
        self.filters.push(("limit", entries.to_string()));
        self
    }

    /// All entries that are left.
    pub async fn all(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(entry) = self.next().await? {
            all.push(entry);
        }
        Ok(all)
    }
}

/// The parameters that have a value.
pub(crate) fn filters<const N: usize>(given: [(&'static str, Option<String>); N]) -> Vec<(&'static str, String)> {
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
