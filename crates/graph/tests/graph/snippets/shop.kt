package com.ex
import com.ex.a.Foo
import com.ex.b.*
import x.y as Z
/** Doc */
class A(private val svc: Svc, x: Int) : Base(x), I {
  val name: String = "a"
  private val f = Foo()
  fun run(p: Foo): Int { p.go(); svc.call(); helper(1); f.go(); val q = Foo(); q.bar(); return A.make() }
  companion object {
  fun make() = 1
  }
  constructor(a: String) : this(Svc(), 1) {}
}
interface I {
  fun m()
}
enum class E { ONE, TWO }
object Single {
  fun s() {}
}
data class D(val a: Int)
fun String.ext(): Int = 1
fun top() = A(1).run(2)
typealias Al = List<Int>
const val MAX = 3
class T {
  @Test
  fun works() { top() }
}
