//! Repositories as people have them and as attackers make them, with the machine's own git.

mod bounds;
mod kinds;
mod programs;
