//! crate doc
use std::{fmt, io::{self, Read as R}};
pub use crate::a::B;
mod child;
/// A struct.
#[derive(Debug)]
pub struct S<T> { pub f: Foo, g: Arc<Bar> }
pub enum E { A(u8), B { x: u8 } }
pub trait Tr: Base { fn req(&self); fn def(&self) -> u8 { self.req(); 1 } }
impl<T> Tr for S<T> { fn req(&self) { self.f.go(); Self::new(); } }
impl<T> S<T> { pub fn new() -> Self { let x = Foo::make(); x.go(); S { f: x } } }
const LIM: usize = 3;
static ST: u8 = 0;
type Al = Vec<u8>;
macro_rules! mac { ($a:expr) => { $a } }
fn run(p: &Foo, q: Bar) { p.go(); mac!(q.go(helper(1), Foo::make())); let c = |z| z + 1; io::stdin(); }
mod inner { pub fn deep() {} }
#[cfg(test)]
mod tests { use super::*;
  /// checks
  #[test]
  fn works() { assert_eq!(run(1), 2); if let Some(x) = y {} }
}
