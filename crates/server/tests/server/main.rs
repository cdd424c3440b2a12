//! The server over its real protocol: sockets of this machine, a recorded model, real tools.

mod access;
mod frames;
mod kit;
mod runs;
mod storm;
