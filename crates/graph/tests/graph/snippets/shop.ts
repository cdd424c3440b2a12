/** Doc of I. */
export interface I extends J<K> { a: number; m(x: string): void }
export enum E { One, Two = 2 }
export type T = I | null;
export default class C extends Base implements I, L { 
  private x: Foo = new Foo();
  #p = 1;
  constructor(private readonly svc: Svc) { super(); this.y = 1; }
  m(x: string): void { this.svc.call(x); this.x.go(); }
  handler = () => { this.m("a") };
}
export const arrow = async (a: Foo): Promise<Bar> => { a.go(); return plain(a); };
function plain<T>(a: T) { const inner = () => a; return inner(); }
const { x1, y1: z1 } = require('./lib');
import Def, * as ns from './m';
import { a as b, type Q } from "./q";
export { plain as renamed } from './z';
namespace N { export function f() {} }
abstract class AB { abstract g(): void }
describe('suite', () => { it('works', async () => { expect(arrow(1)).toBe(2); }); });
const el = <T,>(x: T) => x;
export default plain;
