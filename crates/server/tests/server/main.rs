//! The server over its real protocol: sockets of this machine, a recorded model, real tools.

mod access;
mod frames;
mod kit;
mod outside;
mod page;
mod runs;
mod storm;
