//! The proxy as its clients see it: real connections over loopback. Public addresses are data only: the seams of the tests lead
//! each of them to a listener of the test.

// Helpers of tests are not inside `#[test]` functions, where these are allowed anyway.
#![allow(clippy::unwrap_used, clippy::panic)]

mod addresses;
mod asking;
mod bounds;
mod garbage;
mod hosts;
mod http;
mod servers;
mod socks;
mod system;
mod tls;
mod tunnels;
mod world;
