//! What there is to ask.

pub(crate) mod config;
mod fields;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod lakeview;
pub(crate) mod meta;
pub(crate) mod models;
pub(crate) mod modes;
mod multipart;
pub(crate) mod online;
pub(crate) mod review;
pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod tools;
mod workplace;

use axum::Router;

use crate::api::{Api, Table};
use crate::app::App;

/// The whole table.
pub(crate) fn all() -> (Router<App>, Table) {
    let mut api = Api::new();
    meta::add(&mut api);
    runs::add(&mut api);
    lakeview::add(&mut api);
    online::add(&mut api);
    modes::add(&mut api);
    tools::add(&mut api);
    models::add(&mut api);
    config::add(&mut api);
    sessions::add(&mut api);
    files::add(&mut api);
    git::add(&mut api);
    review::add(&mut api);
    crate::page::add(&mut api);
    api.finish()
}
