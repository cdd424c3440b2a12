#include "a.h"
#include <vector>
namespace N { 
class K : public Base<Foo>, private M {
 public:
  K(int a);
  ~K();
  int decl(int q) const;
  static K* make();
  bool operator==(const K& o) const { return true; }
 private:
  std::vector<int> v_;
  int a, b;
};
struct S { int x; };
enum class Color { Red, Green };
}
int N::K::decl(int q) const { return helper(q) + this->b; }
int *ptr(int q) { K k; k.decl(1); K* p = new K(1); p->decl(2); return N::other(q); }
template <typename T> T maxi(T a, T b) { return a; }
typedef struct { int z; } Anon;
typedef int (*cb)(int);
using Str = std::string;
#define MAXX(a,b) ((a)>(b))
#define LIM 3
int proto(int);
static int counter = 0;
N::K::K(int a) : a(a) {}
