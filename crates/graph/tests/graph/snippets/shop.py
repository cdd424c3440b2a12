"""Mod doc."""
import os.path as osp, sys
from .pkg.mod import Foo, bar as baz
from x import *

LIMIT = 3
client = Client(1)

@decorate
class A(Base, metaclass=M):
    """A class."""
    x: int = 1

    def __init__(self, a: Foo, *args, b=None):
        self.a = a
        self.n = Foo()

    @staticmethod
    def make(k: "A") -> "A":
        def inner(z):
            return helper(z)
        return inner(k)

    async def run(self):
        self.make(1)
        y = Foo()
        y.go()
        self.a.go()
        super().run()
        print(baz(osp.join("a")))
        [q.w() for q in self.items()]
def test_a():
    # hi
    A(None).run()
