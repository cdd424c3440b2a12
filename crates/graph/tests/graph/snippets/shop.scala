package com.ex
import a.b.{C, D => E}
import x.y._
/** Doc */
class A(val svc: Svc, x: Int) extends Base(x) with T {
  val name: String = "a"
  def run(p: Foo): Int = { p.go(); svc.call(); helper(1); val q = new Foo(); q.bar(); 1 }
}
object A { def make = 1 }
trait T { def m(): Unit }
case class D(a: Int)
enum Color { case Red, Green }
type Al = Int
