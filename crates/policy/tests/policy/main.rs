//! The gate from outside: rule files, shell lines, modes.

mod corpus;
