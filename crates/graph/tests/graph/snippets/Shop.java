package com.ex.app;
import java.util.List;
import static com.ex.Util.help;
import com.ex.model.*;
/** Doc. */
public class F extends Base<T> implements A, B {
  private final Svc svc = new Svc();
  static final int MAX = 3;
  public F(int a) { super(a); this.svc.go(); }
  @Override public <X> List<X> run(String s) { help(s); svc.call(); new Foo().bar(); list.forEach(i -> i.go()); Util.stat(); return null; }
  interface In { void m(); }
  enum Color { RED, GREEN; void e() {} }
  record R(int x, Foo y) { }
  @interface An { String v(); }
  @Test void testIt() { run("a"); }
}
