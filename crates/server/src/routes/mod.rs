//! The routes, one file for each group.

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

use crate::api::{Api, RouteTable};
use crate::app::App;

/// The whole table.
pub(crate) fn all() -> (Router<App>, RouteTable) {
    let mut api = Api::new();
    add(&mut api);
    api.finish()
}

/// Adds every route there is.
pub(crate) fn add(api: &mut Api) {
    meta::add(api);
    runs::add(api);
    lakeview::add(api);
    online::add(api);
    modes::add(api);
    tools::add(api);
    models::add(api);
    config::add(api);
    sessions::add(api);
    files::add(api);
    git::add(api);
    review::add(api);
    crate::page::add(api);
}
