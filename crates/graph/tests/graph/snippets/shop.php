<?php
namespace App\Models;
use App\Svc\Foo;
use App\{A, B as C};
/** Doc */
class U extends Base implements I, J {
  use TraitA;
  const X = 1;
  private Foo $foo;
  public function __construct(private Bar $bar) { $this->foo = new Foo(); parent::__construct(); }
  public static function make(): self { return new self(); }
  public function run(Foo $f) { $f->go(); $this->foo->go(); self::make(); helper(1); $x = new C(); $x->q(); U::make(); }
}
interface I { function m(); }
trait T { function t() {} }
enum E: string { case A = 'a'; }
function helper($a) { return strlen($a); }
