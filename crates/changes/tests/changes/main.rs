//! Tracking and restoring on real trees in temporary folders.
#![allow(clippy::unwrap_used)]

mod git;
mod kinds;
mod linked;
mod parts;
mod property;
mod quarantine;
mod recovering;
mod repository;
mod restoring;
mod returned;
mod tree;
mod unusable;
mod watching;
