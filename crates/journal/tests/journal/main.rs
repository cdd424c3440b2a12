//! The journal through its public face: real files, real processes, real kills.

#![allow(clippy::unwrap_used, clippy::panic)]

mod append;
mod child;
mod crash;
mod damage;
mod dangling;
mod faults;
mod full_disk;
mod golden;
mod index;
mod live;
mod lock;
mod make;
