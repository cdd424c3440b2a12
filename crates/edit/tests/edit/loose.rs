//! Loose matches: the file decides the indentation, or the edit is refused.

use std::path::PathBuf;
use std::process::Command;

use proptest::prelude::*;

use lathe_edit::Looseness::{self, Fuzzy as F, Whitespace as W};
use lathe_edit::Occurrence::{self, All, Exactly, Unique};
use lathe_edit::{EditError, Edited, MatchKind, replace_loosely};

/// The expected result of a row.
#[derive(Debug, Clone, Copy)]
enum Must {
    Be(&'static str),
    /// As `Be`, and it is a Python program, as the content is.
    Py(&'static str),
    /// Refused because the indentation is unclear, at this line.
    Unclear(usize),
    /// Not found at all.
    No,
    Twice,
}
use Must::{Be, No, Py, Twice, Unclear};

/// A row: description, looseness, occurrences, content, old, new, result.
type Row = (&'static str, Looseness, Occurrence, &'static str, &'static str, &'static str, Must);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // The vectors of the audit.
    ("edit-02: first matched line", F, Unique, "  hello\n    world\n", "hello\nworld", "goodbye\nmoon", Be("  goodbye\n  moon\n")),
    ("edit-11: tokens after a blank line", F, Unique, "\n  function oldFunc() {\n    // some code\n  }", "function  oldFunc() {\n    // some code\n  }", "function newFunc() {\n  // new code\n}", Be("\n  function newFunc() {\n    // new code\n  }")),
    ("edit-12: blank first line", F, Unique, "  // some comment\n\n  function oldFunc() {}", "\nfunction oldFunc() {}", "\n  function newFunc() {}", Be("  // some comment\n\n  function newFunc() {}")),
    ("edit-34: tabs, then spaces", F, Unique, "\tif x:\n\t    return 1\n", "if x:\nreturn 1\n", "if y:\n    return 2\n", Be("\tif y:\n\t    return 2\n")),
    ("edit-35: what follows is kept", F, Unique, "  let  x = 1; // keep\n", "let x = 1;", "let y = 2;", Be("  let y = 2; // keep\n")),
    ("the same with a line break in both", F, Unique, "  let  x = 1; // keep\n", "let x = 1;\n", "let y = 2;\n", Be("  let y = 2; // keep\n")),
    // Tabs and spaces.
    ("tabs for flat old", F, Unique, "\tif x:\n\t\treturn 1\n", "if x:\nreturn 1\n", "if y:\n    return 2\n", Be("\tif y:\n\t\treturn 2\n")),
    ("spaces for tabs", W, Unique, "func f() {\n\tif a {\n\t\tb()\n\t}\n}\n", "    if a {\n        b()\n    }\n", "    if a {\n        if c {\n            d()\n        }\n    }\n", Be("func f() {\n\tif a {\n\t\tif c {\n\t\t\td()\n\t\t}\n\t}\n}\n")),
    ("tabs for spaces", W, Unique, "class A:\n  def f(self):\n    return 1\n", "\tdef f(self):\n\t\treturn 1\n", "\tdef f(self):\n\t\tif self:\n\t\t\treturn 1\n", Py("class A:\n  def f(self):\n    if self:\n      return 1\n")),
    ("tabs, one level seen", W, Unique, "if a {\n\tb()\n\tc()\n}\n", "b()\nc()\n", "if d {\n    b()\n}\n", Be("if a {\n\tif d {\n\t\tb()\n\t}\n}\n")),
    ("new text deeper than old, tabs", W, Unique, "if a {\n\tb()\n\tc()\n}\n", "b()\nc()\n", "        d()\n        e()\n", Be("if a {\n\td()\n\te()\n}\n")),
    ("new text in tabs, file in spaces", W, Unique, "if a:\n    b()\n    c()\n", "  b()\n  c()\n", "\tif d:\n\t\tb()\n", Py("if a:\n    if d:\n        b()\n")),
    ("new text in spaces, file in tabs", W, Unique, "if a:\n\tb()\n\tc()\n", "  b()\n  c()\n", "    if d:\n        b()\n", Py("if a:\n\tif d:\n\t\tb()\n")),
    ("two levels at once", W, Unique, "a:\n\t\tb\n", "a:\n        b\n", "a:\n    c:\n        b\n", Be("a:\n\tc:\n\t\tb\n")),
    ("tabs after spaces in the new text", W, Unique, "if a:\n    b()\n    c()\n", "  b()\n  c()\n", "  if d:\n  \te()\n", Py("if a:\n    if d:\n        e()\n")),
    ("a tab among spaces is unclear", W, Unique, "if a:\n    b()\n    c()\n", "  b()\n  c()\n", "  if d:\n   \te()\n", Unclear(2)),
    ("mixed nesting in the new text is unclear", W, Unique, "if a:\n    b()\n    c()\n", "  b()\n  c()\n", "  if d:\n\te()\n", Unclear(2)),
    ("mixed indentation of the file is kept", W, Unique, "if a:\n\t  b()\n\t  c()\n", "b()\nc()\n", "d()\nc()\n", Py("if a:\n\t  d()\n\t  c()\n")),
    // Too shallow, too deep.
    ("too shallow", W, Unique, "class A:\n    def f(self):\n        pass\n", "def f(self):\n    pass\n", "def f(self):\n    if self:\n        pass\n", Py("class A:\n    def f(self):\n        if self:\n            pass\n")),
    ("too deep", W, Unique, "def f():\n    a = 1\n    return a\n", "            a = 1\n            return a\n", "            a = 2\n            return a\n", Py("def f():\n    a = 2\n    return a\n")),
    ("too deep, steps out", W, Unique, "def f():\n    a = 1\n    b = 2\n", "        a = 1\n        b = 2\n", "        a = 1\n    c = 3\n", Py("def f():\n    a = 1\nc = 3\n")),
    ("steps out further than the file goes", W, Unique, "def f():\n    a = 1\n    b = 2\n", "            a = 1\n            b = 2\n", "            a = 1\n    c = 3\n", Unclear(2)),
    ("steps out by half a step", W, Unique, "def f():\n  a = 1\n  b = 2\n", "        a = 1\n        b = 2\n", "        a = 1\n    c = 3\n", Unclear(2)),
    ("two spaces for four", W, Unique, "def f(x):\n    if x:\n        return 1\n", "  if x:\n    return 1\n", "  if x:\n    while x:\n      x -= 1\n", Py("def f(x):\n    if x:\n        while x:\n            x -= 1\n")),
    ("four spaces for two", W, Unique, "def f(x):\n  if x:\n    return 1\n", "    if x:\n        return 1\n", "    if x:\n        while x:\n            x -= 1\n", Py("def f(x):\n  if x:\n    while x:\n      x -= 1\n")),
    ("new text has the file's indentation", W, Unique, "def f():\n    x = 1\n    y = 2\n", "x = 1\ny = 2\n", "    x = 1\n    y = 3\n", Py("def f():\n    x = 1\n    y = 3\n")),
    ("new text has an indentation of its own", W, Unique, "def f():\n    x = 1\n    y = 2\n", "x = 1\ny = 2\n", "  x = 1\n  if x:\n      y = 3\n", Py("def f():\n    x = 1\n    if x:\n        y = 3\n")),
    ("the first line moves and another stays", W, Unique, "def f():\n    x = 1\n    y = 2\n", "  x = 1\n  y = 2\n", "if 1:\n  x = 1\n  y = 2\n", Unclear(2)),
    ("the first line goes and a deeper one stays", W, Unique, "def f(x):\n    if x:\n        g()\n", "if x:\n    g()\n", "    g()\n", Unclear(2)),
    // Blank lines.
    ("blank first line stays", W, Unique, "x\n\ta\n\tb\ny\n", "\n  a\n  b\n", "\n  c\n", Be("x\n\tc\ny\n")),
    ("blank first line not in the new text", W, Unique, "def f():\n\treturn 1\n", "\n    return 1\n", "    return 2\n", Py("def f():\n\treturn 2\n")),
    ("blank first line taken away", W, Unique, "def f():\n\n\treturn 1\n", "\n    return 1\n", "    return 2\n", Py("def f():\n\treturn 2\n")),
    ("blank line with blanks taken away", W, Unique, "def f():\n  \n\treturn 1\n", "\n    return 1\n", "    return 2\n", Py("def f():\n\treturn 2\n")),
    ("two blank first lines", W, Unique, "def f():\n\n\n\treturn 1\n", "\n\n    return 1\n", "\n\n    return 2\n", Py("def f():\n\n\n\treturn 2\n")),
    ("blank last line with blanks", W, Unique, "def f():\n\ta = 1\n\treturn a\n", "    a = 1\n    ", "    a = 2\n  ", Py("def f():\n\ta = 2\n\treturn a\n")),
    ("no line break after the new text", W, Unique, "def f():\n\ta = 1\n\treturn a\n", "    a = 1\n", "    a = 2", Py("def f():\n\ta = 2\n\treturn a\n")),
    ("line breaks around a deletion", W, Unique, "x\n\ta\n\tb\ny\n", "\n  a\n  b\n", "", Be("x\ny\n")),
    ("a deletion with the line break before", W, Unique, "x\n\ta\ny\n", "\n  a", "", Be("x\ny\n")),
    ("a deletion with the line break after", W, Unique, "x\n\ta\ny\n", "  a\n", "", Be("x\ny\n")),
    ("a deletion at the end of the file", W, Unique, "x\n\ta\n\tb", "\n  a\n  b", "", Be("x")),
    ("a blank line inside", W, Unique, "def f():\n\ta = 1\n\n\tb = 2\n", "    a = 1\n\n    b = 2\n", "    a = 1\n\n    b = 3\n", Py("def f():\n\ta = 1\n\n\tb = 3\n")),
    ("blanks on a new blank line are left out", W, Unique, "def f():\n\ta = 1\n", "    a = 1\n", "    a = 1\n    \n    b = 2\n", Py("def f():\n\ta = 1\n\n\tb = 2\n")),
    ("blanks on a kept blank line stay", W, Unique, "def f():\n\ta = 1\n  \n\tb = 2\n", "    a = 1\n\n    b = 2\n", "    a = 3\n\n    b = 2\n", Py("def f():\n\ta = 3\n  \n\tb = 2\n")),
    ("new text begins with more blank lines", W, Unique, "a = 1\nif a:\n\tb = 2\n", "    b = 2\n", "\n\n    b = 3\n", Py("a = 1\nif a:\n\n\n\tb = 3\n")),
    // Line endings and blanks at line ends.
    ("CRLF", W, Unique, "if a:\r\n\tb()\r\n\tc()\r\n", "  b()\n  c()\n", "  if d:\n    c()\n", Py("if a:\r\n\tif d:\r\n\t\tc()\r\n")),
    ("CRLF, from the first word on", W, Unique, "class A:\r\n    def f(self):\r\n        return 1\r\n", "def f(self):\n        return 1\n", "def f(self):\n        return 2\n", Py("class A:\r\n    def f(self):\r\n        return 2\r\n")),
    ("CRLF, the rest relative to the first", W, Unique, "class A:\r\n    def f(self):\r\n        return 1\r\n", "def f(self):\n        return 1\n", "def f(self):\n    return 2\n", Py("class A:\r\n    def f(self):\r\n        return 2\r\n")),
    ("CRLF, one line becomes two", W, Unique, "if a:\r\n    b()\r\n", "b()\n", "b()\nc()\n", Py("if a:\r\n    b()\r\n    c()\r\n")),
    ("CRLF, the second has the file's indentation", W, Unique, "if a:\r\n    b()\r\n", "b()\n", "b()\n    c()\n", Py("if a:\r\n    b()\r\n    c()\r\n")),
    ("CRLF, steps out after lines that stay", W, Unique, "class A:\r\n    def f(self):\r\n        x = 1\r\n        return x\r\n", "x = 1\n        return x\n", "x = 2\n        return x\n\n    def g(self):\n        return 3\n", Py("class A:\r\n    def f(self):\r\n        x = 2\r\n        return x\r\n\r\n    def g(self):\r\n        return 3\r\n")),
    ("CRLF, shallower without a reason", W, Unique, "class A:\r\n    def f(self):\r\n        x = 1\r\n        return x\r\n", "x = 1\n        return x\n", "x = 2\n    return 2\n", Unclear(3)),
    ("mixed line endings", W, Unique, "if a:\n\tb()\r\n\tc()\n", "  b()\n  c()\n", "  b()\n  d()\n", Py("if a:\n\tb()\r\n\td()\n")),
    ("blanks at line ends", W, Unique, "if a:\n    b()  \n    c()\n", "    b()\n    c()\n", "    b()\n    d()\n", Py("if a:\n    b()  \n    d()\n")),
    ("blanks at line ends, relative", W, Unique, "if a:\n    for b in a:  \n        c()\n", "for b in a:\n        c()\n", "for b in a:\n    d()\n", Py("if a:\n    for b in a:  \n        d()\n")),
    ("blanks at line ends, no line break in new", W, Unique, "if a:\n    b()  \n    c()\n", "    b()\n", "    d()", Py("if a:\n    d()\n    c()\n")),
    // Inside an indentation, which only looks exact.
    ("inside the indentation, a line more", W, Unique, "def f():\n    if 1:\n        a = 1\n", "    a = 1\n", "    a = 1\n    b = 2\n", Py("def f():\n    if 1:\n        a = 1\n        b = 2\n")),
    ("inside the indentation, a block", W, Unique, "def f():\n    if 1:\n        a = 1\n", "  a = 1\n", "  while 1:\n    b = 2\n", Py("def f():\n    if 1:\n        while 1:\n          b = 2\n")),
    ("inside the indentation of tabs", W, Unique, "def f():\n\tif 1:\n\t\ta = 1\n", "\ta = 1\n", "\twhile 1:\n\t\tb = 2\n", Py("def f():\n\tif 1:\n\t\twhile 1:\n\t\t\tb = 2\n")),
    // From the first word on.
    ("first word, the rest as in the file", F, Unique, "class A:\n    def f(self, a):\n        return a\n", "def f(self,a):\n        return a\n", "def f(self, b):\n        return b\n", Py("class A:\n    def f(self, b):\n        return b\n")),
    ("first word, the rest relative", F, Unique, "class A:\n    def f(self, a):\n        return a\n", "def f(self,a):\n        return a\n", "def f(self, b):\n    return b\n", Py("class A:\n    def f(self, b):\n        return b\n")),
    ("first word, a line of the rest stays", F, Unique, "class A:\n    def f(self, a):\n        a += 1\n        return a\n", "def f(self,a):\n        a += 1\n        return a\n", "def f(self, b):\n        a = b\n        return a\n", Py("class A:\n    def f(self, b):\n        a = b\n        return a\n")),
    // Words and signs.
    ("blanks around signs", F, Unique, "if ( a ):\n    b( 1,2 )\n", "if (a):\n    b(1, 2)\n", "if a:\n    b(1)\n", Py("if a:\n    b(1)\n")),
    ("one line of the file for two", F, Unique, "if x:\n    if a: b()\n", "    if a:\n        b()", "    if c:\n        b()", Py("if x:\n    if c:\n        b()\n")),
    ("two lines of the file for one", F, Unique, "if x:\n    foo(a,\n        b)\n", "foo(a, b)", "foo(b, a)", Py("if x:\n    foo(b, a)\n")),
    ("flat new text for a block", F, Unique, "if x:\n    if a: b()\n", "    if a:\n        b()", "if c:\nb()", Unclear(2)),
    ("words stay apart", F, Unique, "returnx = 1\n", "return x", "y", No),
    ("a word ends where it ends", F, Unique, "let  x = 12\n", "let x = 1", "y", No),
    ("a number ends where it ends", F, Unique, "let  x = 1.5\n", "let x = 1", "y", No),
    ("a line break between words counts", F, Unique, "value\nother thing\n", "value other thing", "y", No),
    ("not in the middle of a line", F, Unique, "a; b( 1, 2)\n", "b(1,  2)", "y", No),
    ("the indentation is that of the line", F, Unique, "def f():\n\tx  = [ 1 ]\n\treturn x\n", "x = [1]\n", "x = [\n    2,\n]\n", Py("def f():\n\tx = [\n\t\t2,\n\t]\n\treturn x\n")),
    ("a comment after it stays", F, Unique, "def f():\n    x  = 1  # why\n    return x\n", "x = 1\n", "x = 2\n", Py("def f():\n    x = 2  # why\n    return x\n")),
    ("a deletion before a comment", F, Unique, "def f():\n    x  = 1  # why\n    return 1\n", "x = 1\n", "", Unclear(2)),
    ("a deletion", F, Unique, "def f():\n    x  = 1\n    return 1\n", "x = 1\n", "", Py("def f():\n    return 1\n")),
    ("tokens in two places", F, Unique, "x  = f( 1 )\ny\nx  = f( 1 )\n", "x = f(1)", "z", Twice),
    ("tokens in both places", F, All, "if a:\n    x  = f( 1 )\nelse:\n\tx =  f( 1 )\n", "x = f(1)", "x = f(2)\nx += 1", Py("if a:\n    x = f(2)\n    x += 1\nelse:\n\tx = f(2)\n\tx += 1\n")),
    ("the style of the file for a line at its edge", F, Unique, "func  f() {\n}\n\nfunc g() {\n\ta()\n}\n", "func f() {\n}", "func f() {\n    b()\n}", Be("func  f() {\n\tb()\n}\n\nfunc g() {\n\ta()\n}\n")),
    // Nearly.
    ("nearly, one level", F, Unique, "def f():\n    total = first_value + second\n    return total\n", "    total = first_valu + second\n", "    total = 1\n", Py("def f():\n    total = 1\n    return total\n")),
    ("nearly, too shallow", F, Unique, "def f():\n    total = first_value + second\n    return total\n", "total = first_valu + second\n", "total = 1\n", Py("def f():\n    total = 1\n    return total\n")),
    ("nearly, in tabs", F, Unique, "def f(ready):\n\tif ready:\n\t\tstart_now(ready)\n", "    if ready:\n        start_nov(ready)\n", "    if ready:\n        stop(ready)\n", Py("def f(ready):\n\tif ready:\n\t\tstop(ready)\n")),
    ("nearly, no line break in new", F, Unique, "def f():\n    total = first_value + second\n    return total\n", "total = first_valu + second\n", "total = 1", Py("def f():\n    total = 1\n    return total\n")),
    ("nearly, flat, a line stays", F, Unique, "if ready_to_go:\n    start_the_engine()\n    stop_all()\n", "if ready_to_go:\nstart_the_engin()\nstop_all()\n", "if ready_to_go:\nstart_it()\nstop_all()\n", Unclear(1)),
    ("nearly, flat blocks", F, Unique, "if ready_to_go:\n    start_the_engine()\n", "if ready_to_go:\nstart_the_engin()\n", "if ready:\nstart_it()\n", Unclear(1)),
    ("nearly, flat old and nested new", F, Unique, "x = 1\nif ready_to_go:\n    start_the_engine()\n", "if ready_to_go:\nstart_the_engin()\n", "if ready:\n    start_it()\n", Py("x = 1\nif ready:\n    start_it()\n")),
    // Other kinds of files.
    ("Makefile", W, Unique, "all: a\n\tcc -o a a.c\n\tstrip a\n", "    cc -o a a.c\n    strip a\n", "    cc -O2 -o a a.c\n    strip a\n", Be("all: a\n\tcc -O2 -o a a.c\n\tstrip a\n")),
    ("Makefile, a rule and its recipe", W, Unique, "all: a\n\tcc a.c\n", "all: a\n    cc a.c\n", "all: a b\n    cc a.c\n    cc b.c\n", Be("all: a b\n\tcc a.c\n\tcc b.c\n")),
    ("YAML", W, Unique, "jobs:\n  build:\n    steps:\n      - run: make\n", "steps:\n  - run: make\n", "steps:\n  - run: make\n  - run: make test\n", Be("jobs:\n  build:\n    steps:\n      - run: make\n      - run: make test\n")),
    ("YAML, a list at the edge", W, Unique, "  a:\n  - b\n  - c\n", "a:\n- b\n- c\n", "a:\n- b\n- d\n", Be("  a:\n  - b\n  - d\n")),
    ("JSON", W, Unique, "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", "\"a\": {\n    \"b\": 1\n}\n", "\"a\": {\n    \"b\": 1,\n    \"c\": [\n        2\n    ]\n}\n", Be("{\n  \"a\": {\n    \"b\": 1,\n    \"c\": [\n      2\n    ]\n  }\n}\n")),
    ("HTML", W, Unique, "<ul>\n\t<li>\n\t\t<a>x</a>\n\t</li>\n</ul>\n", "  <li>\n    <a>x</a>\n  </li>\n", "  <li>\n    <b>\n      <a>y</a>\n    </b>\n  </li>\n", Be("<ul>\n\t<li>\n\t\t<b>\n\t\t\t<a>y</a>\n\t\t</b>\n\t</li>\n</ul>\n")),
    ("Rust", W, Unique, "impl A {\n    fn f() {\n        g();\n    }\n}\n", "fn f() {\n    g();\n}\n", "fn f() {\n    g();\n    h();\n}\n\nfn i() {}\n", Be("impl A {\n    fn f() {\n        g();\n        h();\n    }\n\n    fn i() {}\n}\n")),
    ("continuation lines", W, Unique, "def f():\n\treturn g(1,\n\t         2)\n", "    return g(1,\n             2)\n", "    return g(1,\n             3)\n", Py("def f():\n\treturn g(1,\n\t         3)\n")),
    ("no final newline", W, Unique, "x\n\ta\n\tb", "  a\n  b", "  c\n  d", Be("x\n\tc\n\td")),
    // Several places.
    ("twice", W, Unique, "{\n\ta\n\tb\n}\n{\n\t\ta\n\t\tb\n}\n", "  a\n  b\n", "  c\n", Twice),
    ("both, each in its indentation", W, All, "if 1:\n    a = 1\n    b = 2\nif 2:\n\ta = 1\n\tb = 2\n", "  a = 1\n  b = 2\n", "  a = 1\n  if a:\n    b = 3\n", Py("if 1:\n    a = 1\n    if a:\n      b = 3\nif 2:\n\ta = 1\n\tif a:\n\t\tb = 3\n")),
    ("a count of two", W, Exactly(2), "if 1:\n    a = 1\n    b = 1\nif 2:\n\ta = 1\n\tb = 1\n", "  a = 1\n  b = 1\n", "  a = 2\n", Py("if 1:\n    a = 2\nif 2:\n\ta = 2\n")),
    ("all or none: one of two is unclear", W, All, "if 1:\n        a = 1\n        b = 2\nif 2:\n  a = 1\n  b = 2\n", "    a = 1\n    b = 2\n", "    a = 1\nc = 3\n", Unclear(5)),
    // Not the same lines.
    ("other nesting", W, Unique, "if x:\n\ta\nb\n", "  if x:\n  a\n  b\n", "y", No),
    ("flattened nesting", W, Unique, "if x:\na\n", "if x:\n  a\n", "y", No),
    ("flat old needs a looser rung", W, Unique, "if x:\n    a()\n", "if x:\na()\n", "if y:\na()\n", No),
];

fn run(row: &Row) -> Result<Edited, EditError> {
    let (_, loose, how, content, old, new, _) = row;
    replace_loosely(content.as_bytes(), old, new, *how, *loose)
}

#[test]
fn a_loose_match_is_indented_as_the_file_or_refused() {
    assert!(ROWS.len() >= 80, "{}", ROWS.len());
    let mut wrong = Vec::new();
    for row in ROWS {
        let (name, content, must) = (row.0, row.3, row.6);
        match (run(row), must) {
            (Ok(edited), Be(wanted) | Py(wanted)) if edited.content == wanted.as_bytes() => {
                assert_ne!(edited.matched, MatchKind::Exact, "{name}");
                outside_is_kept(name, content, &edited);
            }
            (Err(EditError::Unclear { place }), Unclear(line)) if place.line == line => {}
            (Err(EditError::NoMatch { .. }), No) | (Err(EditError::Ambiguous { .. }), Twice) => {}
            (Ok(edited), must) => {
                let (matched, content) =
                    (edited.matched, String::from_utf8_lossy(&edited.content).into_owned());
                wrong.push(format!("{name}: {content:?} by {matched:?}, not {must:?}"));
            }
            (Err(error), must) => wrong.push(format!("{name}: {error:?}, not {must:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The lines before the first and after the last match are there again, byte for byte.
fn outside_is_kept(name: &str, content: &str, edited: &Edited) {
    let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<String>>();
    let (old, new) = (lines(content), lines(&String::from_utf8_lossy(&edited.content)));
    let first = edited.found.first().map_or(0, |range| range.start.saturating_sub(1)).min(old.len());
    let last = edited.found.last().map_or(0, |range| range.end - 1).min(old.len());
    assert_eq!(old[..first], new[..first.min(new.len())], "{name}: before");
    let after = &old[last..];
    assert_eq!(after, &new[new.len().saturating_sub(after.len())..], "{name}: after");
}

#[test]
fn what_was_python_is_python() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("loose-python");
    std::fs::create_dir_all(&folder).unwrap();
    let mut files = Vec::new();
    for (at, row) in ROWS.iter().enumerate() {
        if let (Py(_), Ok(edited)) = (row.6, run(row)) {
            for (part, bytes) in [("before", row.3.as_bytes()), ("after", edited.content.as_slice())] {
                let file = folder.join(format!("row{at}_{part}.py"));
                std::fs::write(&file, bytes).unwrap();
                files.push(file);
            }
        }
    }
    assert!(files.len() >= 80, "{}", files.len());
    let done = Command::new("python3").args(["-m", "py_compile"]).args(&files).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A block of Python-like or Go-like lines: the depth of each and what it says.
fn block() -> impl Strategy<Value = Vec<(usize, String)>> {
    proptest::collection::vec((0..3_usize, "[a-e]{2,6}"), 1..6).prop_map(|lines| {
        let mut depth = 0;
        let mut block = Vec::new();
        for (at, (step, word)) in lines.into_iter().enumerate() {
            // Never shallower than the first line, never two levels deeper at once.
            depth = if at == 0 { 0 } else { (depth + 1).min(step) };
            block.push((depth, format!("{word}({at})")));
        }
        block
    })
}

fn written(block: &[(usize, String)], base: &str, step: &str) -> String {
    block.iter().map(|(depth, text)| format!("{base}{}{text}\n", step.repeat(*depth))).collect()
}

/// An indentation and the step of a level, of one kind.
fn manner() -> impl Strategy<Value = (String, &'static str)> {
    (0..4_usize, prop_oneof![Just("\t"), Just("  "), Just("    "), Just("   ")])
        .prop_map(|(base, step)| (step.repeat(base), step))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// For any base and step of the model, in the old text and in the new one, the result has the nesting of the new
    /// text at the place of the file, or the edit is refused.
    #[test]
    fn a_reindented_block_is_put_where_the_old_one_was(
        old in block(),
        new in block(),
        (file_base, file_step) in manner(),
        (model_base, model_step) in manner(),
        (other_base, own_base) in (manner(), any::<bool>()),
        tail in any::<bool>(),
        fuzzy in any::<bool>(),
    ) {
        let stands = written(&old, &file_base, file_step);
        let content = format!("top\n{stands}{}end\n", if tail { "\n" } else { "" });
        let given = written(&old, &model_base, model_step);
        let base = if own_base { model_step.repeat(other_base.0.len() % 4) } else { model_base.clone() };
        let wish = written(&new, &base, model_step);
        prop_assume!(!content.contains(&given) && given != wish);
        let loose = if fuzzy { F } else { W };
        let (before, after) = content.split_once(stands.as_str()).unwrap();
        match replace_loosely(content.as_bytes(), &given, &wish, Unique, loose) {
            Ok(edited) => {
                let content = String::from_utf8(edited.content).unwrap();
                let middle = content.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                prop_assert!(middle.is_some(), "{content:?}");
                let lines: Vec<&str> = middle.unwrap_or_default().lines().collect();
                prop_assert_eq!(lines.len(), new.len());
                let indents: Vec<&str> = lines.iter().map(|line| &line[..line.len() - line.trim_start().len()]).collect();
                prop_assert_eq!(indents[0], file_base.as_str(), "{:?}", content);
                for (at, (depth, text)) in new.iter().enumerate() {
                    prop_assert_eq!(lines[at].trim_start(), text.as_str());
                    // The same nesting: as deep, or deeper, as the new text says of each pair of lines.
                    for (other, (other_depth, _)) in new.iter().enumerate() {
                        let (one, two) = (indents[at], indents[other]);
                        prop_assert_eq!(one == two, depth == other_depth, "{:?}", content);
                        prop_assert_eq!(two.len() > one.len() && two.starts_with(one), other_depth > depth, "{:?}", content);
                    }
                }
            }
            // Only a base of its own can contradict the lines that stay.
            Err(EditError::Unclear { .. }) => prop_assert!(own_base, "{:?} {:?} {:?}", content, given, wish),
            Err(EditError::Ambiguous { .. } | EditError::NoChange) => {}
            Err(error) => prop_assert!(false, "{error:?}"),
        }
    }
}
