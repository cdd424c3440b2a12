import React, { useState as state } from 'react';
import * as util from './util';
const { join } = require('path');
const config = require('./config');

/** Shows one item. */
export function Item({ name }) {
  const [open, setOpen] = state(false);
  return <Button onClick={() => util.log(name)}>{name}</Button>;
}
const arrow = (a) => plain(a);
function plain(a) { return function inner() { return arrow(a); }; }
function* gen() { yield 1; }
class Cart extends Base {
  static total = 0;
  items = [];
  #secret = 1;
  constructor() { super(); this.size = 0; }
  add = (item) => { this.items.push(item); this.check(); };
  check() { return new Item(); }
  get count() { return 1; }
}
Cart.prototype.clear = function () { this.check(); };
exports.make = () => new Cart();
module.exports = { helper: function () { return config.x; } };
export default Cart;
test('adds', () => { expect(new Cart().add(1)).toBe(1); });
