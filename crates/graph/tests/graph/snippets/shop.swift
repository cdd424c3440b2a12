import Foundation
/// Doc
public class A: Base, P {
  let name: String
  var svc = Svc()
  init(a: Int) { super.init() }
  deinit {}
  func run(_ p: Foo, q: Int) -> Int { p.go(); svc.call(); helper(x: 1); self.other(); let z = Foo(); z.bar(); return 1 }
  static func make() -> A { A(a: 1) }
}
struct S { var x: Int }
enum E { case one, two(Int) }
protocol P { func m(); var v: Int { get } }
extension A: Q { func ext() {} }
typealias Al = Int
func top() {}
actor Act { func go() {} }
class T: XCTestCase { func testIt() { top() } }
